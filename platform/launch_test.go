//go:build unix

package platform_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// timeout is far above what any stage needs.
const timeout = 30 * time.Second

// takeOrder reads the whole order. It is written at once and so arrives with
// one read.
const takeOrder = `dd bs=64k count=1 <&3 >/dev/null 2>&1; `

func TestLaunch_NeverSucceedsWithoutAWholeReport(t *testing.T) {
	t.Parallel()
	const confirm = takeOrder + `printf '{"enforcement":{"protections":{}}}' >&3; `
	for name, test := range map[string]struct{ script, says string }{
		"dies before the order":          {`exit 3`, "exit status 3"},
		"is killed before the order":     {`kill -9 $$`, "signal: killed"},
		"dies after the order":           {takeOrder, "exit status 0"},
		"closes the stream and lives on": {takeOrder + `exec 3<&-; read -r forever; kill -STOP $$`, "signal: killed"},
		"says half a report":             {`printf '{"enforcement":{"prot' >&3`, "exit status 0"},
		"says garbage":                   {`echo garbage >&3; cat <&3`, "talk to stage"},
		"says a number":                  {`echo 7 >&3; cat <&3`, "talk to stage"},
		"says nothing of substance":      {`echo '{}' >&3`, "exit status 0"},
		"confirms, then says garbage":    {confirm + `echo garbage >&3; cat <&3`, "talk to stage"},
		"confirms, then half a failure":  {confirm + `printf '{"failure":' >&3`, "exit status 0"},
		"confirms, then says it has failed": {
			confirm + `echo '{"failure":{"step":"execute","path":"/p","cause":"c"}}' >&3`,
			"execute: /p: c",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pid, err := launch(withTimeout(t), t, &scripted{script: test.script})
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error is %v, want one that says %q", err, test.says)
			}
			mustBeReaped(t, pid)
		})
	}
}

func TestLaunch_StageGetsNoEnvironment(t *testing.T) {
	t.Parallel()
	// The environment would be readable in /proc while the stage lives.
	script := takeOrder +
		`printf '{"failure":{"step":"execute","cause":"%s"}}' "$(env | cut -d= -f1 | tr '\n' ' ')" >&3`
	_, err := launch(withTimeout(t), t, &scripted{script: script})
	if err == nil || strings.Contains(err.Error(), "PATH") || strings.Contains(err.Error(), "HOME") {
		t.Errorf("the stage sees %v", err)
	}
	if os.Getenv("PATH") == "" {
		t.Error("this test has no PATH to pass on")
	}
}

func TestLaunch_EndOfStreamAfterTheReportIsTheExecution(t *testing.T) {
	t.Parallel()
	pid, err := launch(withTimeout(t), t, &scripted{script: takeOrder +
		`echo '{"enforcement":{"protections":{}}}' >&3; exec 3<&- true`})
	if err != nil {
		t.Error(err)
	}
	mustBeReaped(t, pid)
}

func TestLaunch_SilentStageIsKilledAtTheDeadline(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	pid, err := launch(ctx, t, &scripted{script: `exec cat <&3`})
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error is %v", err)
	}
	mustBeReaped(t, pid)
}

func TestLaunch_StageIsKilledWhenTheContextIsCancelled(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	fake := &platformtest.Fake{Hold: hold}
	order := platformtest.Confined(t, fake, platformtest.Policy(t))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := platform.Launch(ctx, fake, platform.Target{
			Order: order.Order, Confinement: order.Confinement, Streams: [3]*os.File{
				os.Stdin, os.Stderr,
				os.Stderr,
			}, Start: lifecycle.Start,
		})
		ended <- err
	}()
	hold.Arrived(t)
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
	case <-deadline.After(timeout):
		t.Fatal("the launch did not end with its context")
	}
}

func TestLaunch_MissingStage(t *testing.T) {
	t.Parallel()
	pid, err := launch(withTimeout(t), t, &missingStage{})
	if !errors.Is(err, os.ErrNotExist) || pid != 0 {
		t.Errorf("error is %v, pid %d", err, pid)
	}
}

func TestLaunch_OrdersOfAMegabyteArriveWhole(t *testing.T) {
	t.Parallel()
	// One string may have up to 128 KiB, all together a quarter of the stack's
	// limit (execve(2)).
	order := platformtest.Order(t, platformtest.Act{Verb: platformtest.Environ})
	for i := range 10 {
		order.Env = append(order.Env, string(rune('A'+i))+"="+strings.Repeat("x", 100<<10))
	}
	results, _ := platformtest.Perform(t, &platformtest.Fake{}, order)
	if got, want := string(results[0].Value), strings.Join(order.Env, "\x00")+"\x00"; got != want {
		t.Errorf("%d bytes of environment arrived, want %d", len(got), len(want))
	}
}

func TestLaunch_OrdersOfAnyLengthAreReadToTheEnd(t *testing.T) {
	t.Parallel()
	// Unread bytes would turn the end of the stream into a reset. The lengths
	// are near those that fill the decoder's buffer.
	for _, length := range []int{1535, 1536, 1537, 3583, 3584, 3585, 7679, 7680, 7681} {
		order := orderOfLength(t, length)
		if _, _, err := platformtest.Output(&platformtest.Fake{}, order); err != nil {
			t.Errorf("an order of %d bytes: %v", length, err)
		}
	}
}

// orderOfLength returns a confined order that is sent with this length.
func orderOfLength(t *testing.T, length int) platformtest.Job {
	t.Helper()
	order := platformtest.Order(t)
	fill := 0
	for range 5 { // the order has its orders' length, whose digits count too
		order.Confinement.Orders = platform.Orders(`{"failure":"","x":"` + strings.Repeat("x", fill) + `"}`)
		sent := order.Order
		sent.Orders = order.Confinement.Orders
		data, err := sent.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == length {
			return order
		}
		fill += length - len(data)
	}
	t.Fatalf("no order is %d bytes long", length)
	return order
}

// The garbage collector must not close the stage's end of the handshake before
// the target is executed. Else a program that cannot be executed would pass for
// one that has run.
func TestLaunch_SurvivesGarbageCollectionInTheStage(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{Collect: true}
	order := platformtest.Confined(t, fake, platformtest.Policy(t), platformtest.Act{Verb: platformtest.WorkDir})
	if _, _, err := platformtest.Output(fake, order); err != nil {
		t.Errorf("a target that can be executed: %v", err)
	}
	order.Program = "/no/such/program"
	_, _, err := platformtest.Output(fake, order)
	var failure *platform.Failure
	if !errors.As(err, &failure) || failure.Step != platform.StepProgram {
		t.Errorf("a missing target: %v", err)
	}
}

// A string may have 128 KiB on Linux, and all of them together 1 MiB on macOS.
func TestLaunch_OrdersThatTheKernelCannotTakeFail(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*platformtest.Job){
		"environment": func(o *platformtest.Job) { o.Env = []string{"HUGE=" + strings.Repeat("x", 1<<20)} },
		"arguments":   func(o *platformtest.Job) { o.Argv = append(o.Argv, strings.Repeat("x", 1<<20)) },
	} {
		order := platformtest.Order(t)
		change(&order)
		_, _, err := platformtest.Output(&platformtest.Fake{}, order)
		var failure *platform.Failure
		if !errors.As(err, &failure) || failure.Step != platform.StepProgram || failure.Cause != unix.E2BIG.Error() ||
			failure.Denied {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestLaunch_FindsTheProgramInThePathOfTheOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(platformtest.Self(t), dir+"/act"); err != nil {
		t.Fatal(err)
	}
	order := platformtest.Order(t, platformtest.Act{Verb: platformtest.WorkDir})
	order.Program, order.Env = "act", []string{"PATH=/no/such:" + dir}
	if _, _, err := platformtest.Output(&platformtest.Fake{}, order); err != nil {
		t.Error(err)
	}
	order.Env = []string{"PATH=/no/such"}
	_, _, err := platformtest.Output(&platformtest.Fake{}, order)
	var failure *platform.Failure
	if !errors.As(err, &failure) || failure.Step != platform.StepProgram || failure.Path != "act" || failure.Denied {
		t.Errorf("error is %v", err)
	}
}

func TestProbeStage_ReportsAndEnds(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{}
	confinement, err := fake.Confine(platformtest.Policy(t), platform.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := platform.ProbeStage(withTimeout(t), fake, confinement)
	if err != nil || got.Protections[platform.Filesystem].Status != platform.Enforced {
		t.Errorf("probe: %+v, %v", got, err)
	}
	if _, err := platform.ProbeStage(withTimeout(t), fake,
		platform.Confinement{Orders: platform.Orders(`"nonsense"`)}); err == nil {
		t.Error("a probe that cannot be confined succeeds")
	}
}
