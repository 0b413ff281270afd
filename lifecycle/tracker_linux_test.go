package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

func TestTracker_GroupsHaveWhatItDescribes(t *testing.T) {
	t.Parallel()
	tracker := Open(Options{})
	if tracker.tree == nil {
		skip(t, tracker.reason)
	}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	if got := group.Tracking(); got != tracker.Tracking() || got.Mechanism != MechanismCgroup || !got.Guarantee ||
		got.Detail == "" {
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
	if got.Mechanism != MechanismProcessGroup || got.Guarantee ||
		!strings.Contains(got.Detail, "read-only file system") || got.Fix == "" {
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

// The lock of a dead sidecar may be held for a moment by a child that it was
// starting.
func TestSweepTwice_FindsWhatWasLockedAtTheFirstLook(t *testing.T) {
	t.Parallel()
	dir := stateDir(t)
	j, err := newJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			sweepTwice(t.Context(), Options{StateDir: dir})
		}()
		synctest.Wait() // it has looked and waits
		if !exist(j.path) {
			t.Error("a locked journal was swept")
		}
		// A child that another test has just forked shares the lock, too, until
		// it execs; to close the file would not be enough.
		if err := unix.Flock(int(j.file.Fd()), unix.LOCK_UN); err != nil {
			t.Error(err)
		}
		j.file.Close()
		<-ended
	})
	if exist(j.path) {
		t.Error("the journal is left")
	}
}

func TestOpen_SeveralInOneProcess(t *testing.T) {
	t.Parallel()
	first, second := Open(Options{}), Open(Options{})
	if first.tree == nil || second.tree == nil {
		skip(t, errors.Join(first.reason, second.reason))
	}
	if first.tree.dir == second.tree.dir {
		t.Errorf("both have %s", first.tree.dir)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}
