package lifecycle

import (
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// Without any sandbox a daemon is found by the parents that the kernel
// remembers.
func TestTracker_FindsDaemonsByDescent(t *testing.T) {
	t.Parallel()
	state, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tracker := Open(Options{StateDir: state})
	for name, args := range map[string][]string{"wait": nil, "tree": {"10"}, "daemon": nil} {
		group, err := tracker.NewGroup(name)
		if err != nil {
			t.Fatal(err)
		}
		pids := proctest.StartIn(t, group.Start, proctest.Helper(name, args...))
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		proctest.MustBeGone(t, pids)
		if tracking := group.Tracking(); tracking.Guarantee || tracking.Mechanism != MechanismDescent {
			t.Errorf("%s: %+v", name, tracking)
		}
		if err := group.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := tracker.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(state + "/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
