package proc

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// TestWait_HoldsNoThread is not parallel, so that the goroutines it looks for
// are its own. A goroutine that holds a thread is "syscall" in a list of stacks,
// one that the poller wakes is "IO wait", and one that a signal wakes is "chan
// receive".
func TestWait_HoldsNoThread(t *testing.T) {
	for _, stops := range []bool{false, true} {
		function, state := "proc.awaitChild", "[IO wait"
		if stops {
			function, state = "proc.child.Wait", "[chan receive"
		}
		mustHoldNoThread(t, stops, func(stack string) bool {
			return strings.Contains(stack, function) && strings.Contains(stack, state)
		})
	}
}

func mustHoldNoThread(t *testing.T, stops bool, waits func(stack string) bool) {
	t.Helper()
	const count = 8
	var processes []Process
	var waiting sync.WaitGroup
	for range count {
		command := proctest.Helper("wait")
		process, err := Start(command.Path, command.Args, &os.ProcAttr{Files: []*os.File{os.Stdin}})
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, process)
		waiting.Go(func() {
			if status, err := process.Wait(stops); err != nil || status.Signal() != unix.SIGKILL {
				t.Errorf("the wait says %v, %v", status, err)
			}
		})
	}
	stacks := make([]byte, 1<<20)
	idle := 0
	if !deadline.Until(proctest.Timeout, func() bool {
		idle = 0
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if waits(stack) {
				idle++
			}
		}
		return idle == count
	}) {
		t.Errorf("stops %t: %d of %d waits hold no thread:\n%s", stops, idle, count, stacks)
	}
	for _, process := range processes {
		_ = process.Signal(unix.SIGKILL)
	}
	waiting.Wait()
}

// A stop is reported, and then what comes after it.
func TestWait_ReportsStops(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("wait")
	process, err := Start(command.Path, command.Args, &os.ProcAttr{Files: []*os.File{os.Stdin}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := process.Signal(unix.SIGSTOP); err != nil {
			t.Error(err)
		}
		if status, err := process.Wait(true); err != nil || !status.Stopped() {
			t.Errorf("the wait says %v, %v", status, err)
		}
		if err := process.Signal(unix.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	if err := process.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	if status, err := process.Wait(true); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("the wait says %v, %v", status, err)
	}
}
