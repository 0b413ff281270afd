//go:build unix

package platformtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

func environmentIsExact(t *testing.T, s suite) {
	want := []string{"ONE=1", "EMPTY=", "WITH=a=b\n c", "TWICE=1", "TWICE=2"}
	for name, order := range map[string]Job{
		"unconfined": Order(t, Act{Verb: Environ}),
		"confined":   Confined(t, s.backend, Policy(t), Act{Verb: Environ}),
	} {
		order.Env = want
		results, _ := Perform(t, s.backend, order)
		// Of two entries with one name the actor's runtime shows the first.
		if got, want := string(results[0].Value), "ONE=1\x00EMPTY=\x00WITH=a=b\n c\x00TWICE=1\x00"; got != want {
			t.Errorf("%s: environment is %q, want %q", name, got, want)
		}
	}
}

func workingDirectory(t *testing.T, s suite) {
	dir := newScene(t).dir
	for name, order := range map[string]Job{
		"unconfined": Order(t, Act{Verb: WorkDir}),
		"confined":   Confined(t, s.backend, Policy(t), Act{Verb: WorkDir}),
	} {
		order.Dir = dir
		results, _ := Perform(t, s.backend, order)
		if got := string(results[0].Value); got != dir {
			t.Errorf("%s: working directory is %q (%s), want %q", name, got, results[0].Error, dir)
		}
	}
}

func noDescriptorIsInherited(t *testing.T, s suite) {
	// This descriptor has no close-on-exec flag, like one that an editor may
	// pass on.
	planted := newScene(t).file(t, "planted", "")
	fd, err := unix.Open(planted, unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		t.Fatal(err)
	}
	mark := identify(&stat)
	for name, order := range map[string]Job{
		"unconfined": Order(t, Act{Verb: Files}),
		"confined":   Confined(t, s.backend, Policy(t), Act{Verb: Files}),
	} {
		results, _ := Perform(t, s.backend, order)
		for line := range strings.Lines(string(results[0].Value)) {
			switch strings.TrimSpace(line) {
			case mark:
				t.Errorf("%s: a descriptor of the sidecar was inherited", name)
			case "socket":
				t.Errorf("%s: a socket was inherited", name)
			}
		}
	}
	// The control: a child that is started without the stage inherits it.
	order := Order(t, Act{Verb: Files})
	output := controlChild(t, order)
	if !strings.Contains(output, mark) {
		t.Errorf("the planted descriptor is not inheritable: %q", output)
	}
}

func bytesArriveUnchanged(t *testing.T, s suite) {
	const odd = "\xff\xfe\x80 \u00e9"
	dir := filepath.Join(newScene(t).dir, odd)
	if err := os.Mkdir(dir, 0o700); errors.Is(err, unix.EILSEQ) {
		dir = filepath.Dir(dir) // the file system accepts only UTF-8 names; test the variable only
	} else if err != nil {
		t.Fatal(err)
	}
	order := Order(t, Act{Verb: Environ}, Act{Verb: WorkDir})
	order.Env, order.Dir = []string{"ODD=" + odd}, dir
	results, _ := Perform(t, s.backend, order)
	if got := string(results[0].Value); got != "ODD="+odd+"\x00" {
		t.Errorf("environment is %q", got)
	}
	if got := string(results[1].Value); got != dir {
		t.Errorf("working directory is %q, want %q", got, dir)
	}
}

func unrestrictedOrderIsUnconfined(t *testing.T, s suite) {
	scene := newScene(t)
	bystander := NewBystander(t)
	acts := []Act{
		{Verb: Read, Path: scene.file(t, "read", "content")},
		{Verb: Write, Path: scene.file(t, "write", "")},
		{Verb: List, Path: "/"},
		{Verb: Execute, Path: Self(t)},
		{Verb: Kill, PID: bystander.PID()},
	}
	results, enforcement := Perform(t, s.backend, Order(t, acts...))
	mustAllow(t, acts, results)
	if bystander.End() == nil {
		t.Error("the bystander was not killed")
	}
	if len(enforcement.Protections) > 0 {
		t.Errorf("protections are reported for an order without confinement: %v", enforcement.Protections)
	}
}

func failedStepNeverExecutes(t *testing.T, s suite) {
	scene := newScene(t)
	marker := filepath.Join(scene.dir, "marker")
	text := scene.file(t, "text", "no program")
	for name, test := range map[string]struct {
		change func(*Job)
		want   platform.Failure
	}{
		"confinement that makes no sense": {
			func(o *Job) { o.Confinement.Orders = platform.Orders(`"nonsense"`) },
			platform.Failure{Step: platform.StepConfine},
		},
		"missing directory": {
			func(o *Job) { o.Dir = marker + "/no/such" },
			platform.Failure{
				Step: platform.StepDirectory, Path: marker + "/no/such", Cause: unix.ENOENT.Error(), Missing: true,
			},
		},
		"missing program": {
			func(o *Job) { o.Program = marker + "/no/such" },
			platform.Failure{
				Step: platform.StepProgram, Path: marker + "/no/such", Cause: unix.ENOENT.Error(), Missing: true,
			},
		},
		"program that is none": {
			func(o *Job) { o.Program = text },
			platform.Failure{Step: platform.StepProgram, Path: text, Cause: unix.EACCES.Error(), Denied: true},
		},
	} {
		order := Order(t, Act{Verb: Create, Path: marker})
		test.change(&order)
		_, _, err := Output(s.backend, order)
		var failure *platform.Failure
		if !errors.As(err, &failure) {
			t.Errorf("%s: error is %v, want a failure", name, err)
			continue
		}
		if test.want.Cause == "" && failure.Cause != "" {
			test.want.Cause = failure.Cause // the backend's own text
		}
		if *failure != test.want {
			t.Errorf("%s: failure is %+v, want %+v", name, *failure, test.want)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program was executed although its stage failed")
	}
	// The control: only the failed step prevented the program from running.
	if _, _, err := Output(s.backend, Order(t, Act{Verb: Create, Path: marker})); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("the program of this test does not work: %v", err)
	}
}

func twentyLaunchesAtOnce(t *testing.T, s suite) {
	var all sync.WaitGroup
	for i := range 20 {
		order := Order(t, Act{Verb: Environ})
		if i%2 == 0 {
			order = Confined(t, s.backend, Policy(t), Act{Verb: Environ})
		}
		order.Env = []string{fmt.Sprintf("LAUNCH=%d", i)}
		all.Go(func() {
			output, _, err := Output(s.backend, order)
			if err != nil {
				t.Errorf("launch %d: %v", i, err)
				return
			}
			if got := decode(output); len(got) != 1 || string(got[0].Value) != order.Env[0]+"\x00" {
				t.Errorf("launch %d: got %q", i, output)
			}
		})
	}
	all.Wait()
}

// controlChild runs an order's program directly, with every inheritable
// descriptor.
func controlChild(t *testing.T, order Job) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	pid, err := syscall.ForkExec(order.Program, order.Argv,
		&syscall.ProcAttr{Env: order.Env, Files: []uintptr{0, write.Fd(), 2}})
	write.Close()
	if err != nil {
		t.Fatal(err)
	}
	output := make([]byte, 64<<10)
	n, _ := read.Read(output)
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	results := decode(output[:n])
	if len(results) != 1 {
		t.Fatalf("read results of the actor: %q", output[:n])
	}
	return string(results[0].Value)
}
