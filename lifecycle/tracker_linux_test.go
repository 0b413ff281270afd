package lifecycle

import (
	"errors"
	"strings"
	"testing"
)

func TestTracker_GroupsHaveWhatItDescribes(t *testing.T) {
	t.Parallel()
	tracker := Open(Options{})
	if tracker.tree == nil {
		lack(t, tracker.reason)
	}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	if got := group.Tracking(); got != tracker.Tracking() || got.Mechanism != MechanismCgroup || !got.Guarantee || got.Detail == "" {
		t.Errorf("tracking is %+v", got)
	}
	pids := startIn(t, group, helper("daemon"))
	if err := tracker.Close(); err != nil {
		t.Error(err)
	}
	mustBeGone(t, pids)
}

func TestTracker_SaysWhyThereIsNoGuarantee(t *testing.T) {
	t.Parallel()
	tracker := &Tracker{reason: errors.New("read-only file system")}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	got := group.Tracking()
	if got.Mechanism != MechanismProcessGroup || got.Guarantee || !strings.Contains(got.Detail, "read-only file system") || got.Fix == "" {
		t.Errorf("tracking is %+v", got)
	}
	pids := startIn(t, group, helper("tree", "2"))
	if killed, err := group.Kill(soon(t)); killed != len(pids) || err != nil {
		t.Errorf("killed %d of %d, %v", killed, len(pids), err)
	}
	mustBeGone(t, pids)
	if err := errors.Join(group.Close(), tracker.Close()); err != nil {
		t.Error(err)
	}
}

func TestOpen_SeveralInOneProcess(t *testing.T) {
	t.Parallel()
	first, second := Open(Options{}), Open(Options{})
	if first.tree == nil || second.tree == nil {
		lack(t, errors.Join(first.reason, second.reason))
	}
	if first.tree.dir == second.tree.dir {
		t.Errorf("both have %s", first.tree.dir)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}
