//go:build unix

package proc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func mustClose(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-deadline.After(proctest.Timeout):
		t.Error("the end of the process was not noticed")
	}
}

func mustBeOpen(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
		t.Error("the end was noticed of a process that lives")
	default:
	}
}

// TestWatchProcess_EndsWithItsContext is not parallel, so that the goroutines
// it looks for are its own.
func TestWatchProcess_EndsWithItsContext(t *testing.T) {
	command := proctest.Helper("wait")
	pid := proctest.StartReady(command)[0]
	ctx, cancel := context.WithCancel(context.Background())
	gone, err := Watch(ctx, pid)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	stacks := make([]byte, 1<<20)
	if !deadline.Until(proctest.Timeout, func() bool {
		all := stacks[:runtime.Stack(stacks, true)]
		return !bytes.Contains(all, []byte("proc.watchProcess")) && !bytes.Contains(all, []byte("proc.pollProcess"))
	}) {
		t.Fatalf("the watch continues after its context:\n%s", stacks)
	}
	_ = command.Process.Kill()
	_ = command.Wait()
	mustBeOpen(t, gone)
}

func TestWatchProcess_Child(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("wait")
	gone, err := Watch(proctest.Soon(t), proctest.StartReady(command)[0])
	if err != nil {
		t.Fatal(err)
	}
	mustBeOpen(t, gone)
	_ = command.Process.Kill()
	// A process has ended when it is a zombie; nobody needs to wait for it.
	mustClose(t, gone)
	_ = command.Wait()
}

func TestWatchProcess_NotAChild(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("daemon")
	pids := proctest.StartReady(command)
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	orphan := pids[len(pids)-1]
	gone, err := Watch(proctest.Soon(t), orphan)
	if err != nil {
		t.Fatal(err)
	}
	mustBeOpen(t, gone)
	if err := unix.Kill(orphan, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	mustClose(t, gone)
}

func TestWatchProcess_RefusesInvalidIDs(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("daemon", "middle")
	pids := proctest.StartReady(command)
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pids[len(pids)-1], unix.SIGKILL) })
	for _, pid := range []int{0, -1, pids[0], 1 << 30} {
		if gone, err := Watch(proctest.Soon(t), pid); err == nil || gone != nil {
			t.Errorf("process %d is watched", pid)
		}
	}
	if _, err := Watch(proctest.Soon(t), pids[0]); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a process that has ended: %v", err)
	}
	if _, err := pollProcess(proctest.Soon(t), pids[0]); !errors.Is(err, unix.ESRCH) {
		t.Errorf("a process that has ended: %v", err)
	}
}

func TestPollProcess_ReportsTheEnd(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("wait")
	pid := proctest.StartReady(command)[0]
	synctest.Test(t, func(t *testing.T) {
		gone, err := pollProcess(t.Context(), pid)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mustBeOpen(t, gone)
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
		<-gone // the simulated clock advances to the next check
	})
	_ = command.Process.Release()
}

func TestPollProcess_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		gone, err := pollProcess(ctx, os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait() // the bubble cannot end before its goroutines have
		mustBeOpen(t, gone)
	})
}

func TestExists_SeesOtherUsersProcesses(t *testing.T) {
	t.Parallel()
	if !Exists(1) || !Exists(os.Getpid()) || Exists(1<<30) {
		t.Errorf("Exists returns %t %t %t", Exists(1), Exists(os.Getpid()), Exists(1<<30))
	}
}
