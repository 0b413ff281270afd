package lifecycle

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// A process whose first thread has ended looks like a zombie.
func TestSessionGroup_KillsAProcessWithoutItsFirstThread(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := proctest.StartIn(t, group.Start, proctest.Helper("headless"))
	if killed, err := group.Kill(proctest.Soon(t)); killed != 1 || err != nil {
		t.Errorf("killed %d: %v", killed, err)
	}
	proctest.MustBeGone(t, pids)
}
