package proc

import (
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// TestWait_HoldsNoThread is not parallel, so that the goroutines it looks for
// are its own. A goroutine that holds a thread is "syscall" in a list of stacks,
// and one that the poller wakes is "IO wait".
func TestWait_HoldsNoThread(t *testing.T) {
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
			if status, err := process.Wait(false); err != nil || status.Signal() != unix.SIGKILL {
				t.Errorf("the wait says %v, %v", status, err)
			}
		})
	}
	stacks := make([]byte, 1<<20)
	polled := 0
	for deadline := time.Now().Add(proctest.Timeout); polled < count && time.Now().Before(deadline); runtime.Gosched() {
		polled = 0
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "proc.awaitChild") && strings.Contains(stack, "[IO wait") {
				polled++
			}
		}
	}
	if polled < count {
		t.Errorf("%d of %d waits hold no thread:\n%s", polled, count, stacks)
	}
	for _, process := range processes {
		_ = process.Signal(unix.SIGKILL)
	}
	waiting.Wait()
}
