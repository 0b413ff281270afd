package harness

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// Stop stops a process and waits until none of its threads runs. The kernel
// stops one thread after the other, and kill(2) returns before that, so the
// process could still react to what the test does next.
func Stop(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatalf("stop process %d: %v", pid, err)
	}
	Eventually(t, fmt.Sprintf("process %d has stopped", pid), func() bool { return stopped(pid) })
}
