//go:build linux

package groups

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// moment is when a generated call is ended from outside.
type moment int

const (
	never moment = iota
	// starting is before or after its start is reported, by terminal/close.
	starting
	// afterLines is once its output has so many lines, by terminal/close or SIGKILL.
	afterLines
)

// fate is what a generated call does, and how it ends.
type fate struct {
	number int
	lines  []string
	errs   []bool // whether a line goes to standard error
	status int
	dies   bool // by SIGKILL, which it sends itself
	leaves bool // a process in the background
	opens  int  // a descriptor of its own; 0: none
	pipe   bool
	kind   protocol.Kind

	killed moment
	after  int  // lines
	closed bool // by terminal/close
}

// newFate makes one.
func newFate(number int, random *rand.Rand) fate {
	f := fate{
		number: number, status: random.IntN(256), dies: random.IntN(6) == 0, pipe: random.IntN(2) == 0,
		kind: protocol.Tool, leaves: random.IntN(20) == 0,
	}
	if random.IntN(4) == 0 {
		// What it leaves, the end of its terminal would hang up.
		f.kind, f.pipe, f.leaves = protocol.Terminal, false, false
	}
	if random.IntN(4) == 0 {
		f.opens = 3 + random.IntN(7)
	}
	for i := range random.IntN(40) {
		f.lines = append(f.lines, fmt.Sprintf("%d-%d-%s", number, i, strings.Repeat("x", random.IntN(200))))
		f.errs = append(f.errs, random.IntN(2) == 0)
	}
	if random.IntN(3) == 0 {
		f.killed, f.closed = starting, true
		if random.IntN(2) == 0 && len(f.lines) > 0 {
			f.killed, f.after, f.closed = afterLines, 1+random.IntN(len(f.lines)), random.IntN(2) == 0
		}
	}
	return f
}

// highest is the highest descriptor that a call looks for.
const highest = 70

// script is the command line. It names the descriptors above 2 that it has.
func (f fate) script() string {
	var text strings.Builder
	if f.leaves {
		fmt.Fprintln(&text, "sleep 1000 >/dev/null 2>&1 &")
	}
	fmt.Fprintf(&text, "fd=3; while test $fd -le %d; do test -e /proc/self/fd/$fd && echo descriptor $fd; "+
		"fd=$((fd+1)); done\n", highest)
	if f.opens > 0 {
		fmt.Fprintf(&text, "exec %d</dev/null\n", f.opens)
	}
	for i, line := range f.lines {
		stream := 1
		if f.errs[i] {
			stream = 2
		}
		fmt.Fprintf(&text, "echo %s >&%d\n", line, stream)
	}
	switch {
	case f.killed != never:
		fmt.Fprintln(&text, "exec sleep 1000")
	case f.dies:
		fmt.Fprintln(&text, "kill -9 $$")
	default:
		fmt.Fprintf(&text, "exit %d\n", f.status)
	}
	return text.String()
}

// atOnce is how many generated calls run at a time.
const atOnce = 100

// Generated calls, a hundred at once, have each their own output, status, streams
// and descriptors, in every mixture of kinds and ends. Some are ended at any
// step: nothing of them is left, and the others go on. The sidecar's own caller
// has left it some descriptors, which no call gets.
func TestGroup_GeneratedCallsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	_, random := harness.Generated(t, 1, 4)
	all := machines(t)
	for i, machine := range all {
		var fates []fate
		for number := range calls(t, 200, 100) {
			fates = append(fates, newFate(number, random))
		}
		if !harness.Turn(t, i, len(all)) {
			continue
		}
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			null, err := os.Open(os.DevNull)
			harness.Must(t, err)
			defer null.Close()
			w := harness.NewWorldOutsideDefaults(t)
			e := harness.Start(t, w, harness.Options{Settings: settings(nil), Wrap: func(command *exec.Cmd) {
				command.ExtraFiles = []*os.File{null, nil, null, null} // 3, 5 and 6
				if machine.Wrap != nil {
					machine.Wrap(command)
				}
			}})
			before, _ := run(e, "agent", "echo $PPID")
			if out, _ := run(e, "agent", "exec 9</dev/null; test -e /proc/self/fd/9 && echo seen"); out != "seen" {
				t.Errorf("control: a descriptor is not seen: %q", out)
			}
			turns := make(chan struct{}, atOnce)
			var running sync.WaitGroup
			for _, f := range fates {
				turns <- struct{}{}
				running.Go(func() {
					defer func() { <-turns }()
					f.mustCome(t, e)
				})
			}
			running.Wait()
			if after, _ := run(e, "agent", "echo $PPID"); after != before {
				t.Errorf("the init was %s, and is %s", before, after)
			}
			left := slices.DeleteFunc(fates, func(f fate) bool { return !f.leaves || f.killed != never })
			ended := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
			if ended.Remaining != 0 {
				harness.Breach(t, "closing the group: %+v", ended)
			}
			harness.MustEnd(t, "no call is left", func() bool { return len(inside(t, nil, w.Project)) == 0 })
			if ended.Killed < len(left) {
				t.Errorf("%d calls have left processes; closing the group: %+v", len(left), ended)
			}
		})
	}
}

// mustCome runs a generated call, and compares what comes of it.
func (f fate) mustCome(t *testing.T, e *harness.Editor) {
	t.Helper()
	params := protocol.SpawnParams{
		Kind: f.kind, Group: "agent", Pipe: f.pipe, Command: f.script(), Cwd: e.World.Project,
		SessionID: fmt.Sprintf("00000000-0000-4000-8000-%012d", f.number),
	}
	closing := protocol.CloseParams{SessionID: params.SessionID, GraceMs: new(int)}
	var ending sync.WaitGroup
	if f.killed == starting {
		ending.Go(func() { _, _ = harness.Try(e, protocol.Close, closing) }) // it may come too early
	}
	result, err := harness.Try(e, protocol.Spawn, params)
	ending.Wait()
	if err != nil {
		if f.killed != starting {
			t.Errorf("%+v could not be started: %v", f, err)
		}
		return
	}
	s := e.Session(result)
	switch f.killed {
	case starting:
		_, _ = harness.Try(e, protocol.Close, closing)
	case afterLines:
		s.Await(f.lines[f.after-1] + "\r?\n")
		if f.closed {
			_, _ = harness.Try(e, protocol.Close, closing)
		} else {
			_ = unix.Kill(s.PID, unix.SIGKILL)
		}
	}
	exit := s.Exit()
	want, got := "", s.Output()
	for _, line := range f.lines {
		want += line + "\n"
	}
	if got != want && (f.killed == never || !strings.HasPrefix(want, got)) {
		harness.Breach(t, "%+v printed %q", f, got)
	}
	switch {
	case f.killed != never && exit.Signal == nil,
		f.killed == never && f.dies && (exit.Signal == nil || *exit.Signal != "SIGKILL"),
		f.killed == never && !f.dies && (exit.ExitCode == nil || *exit.ExitCode != f.status):
		harness.Breach(t, "%+v ended by %+v", f, exit)
	case exit.GroupEnded:
		t.Errorf("%+v has ended its group: %+v", f, exit)
	case f.killed == never && f.leaves != (exit.Background == 1):
		t.Errorf("%+v has left %d processes", f, exit.Background)
	}
	if f.killed != never {
		what := fmt.Sprintf("process %d of %+v ends", s.PID, f)
		harness.MustEnd(t, what, func() bool { return !harness.Alive(s.PID) })
	}
	_, _ = harness.Try(e, protocol.Close, closing) // it may be closed
}
