package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/subreaper"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// skipWithoutCgroups skips a test that needs cgroups, or fails it, by the rules
// of harness.Skip.
func skipWithoutCgroups(t *testing.T, cause error) {
	t.Helper()
	harness.Skip(t, "process_tracking", cause.Error())
}

func TestTracker_GroupsHaveItsMechanism(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	tracker := Open(Options{StateDir: dir})
	if tracker.tree == nil {
		skipWithoutCgroups(t, tracker.reason)
	}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	if got := group.Tracking(); got != tracker.Tracking() || got.Mechanism != MechanismCgroup || !got.Guarantee ||
		got.Detail == "" {
		t.Errorf("tracking is %+v", got)
	}
	closeKillsAndRemoves(t, tracker, group, dir)
}

// closeKillsAndRemoves closes a tracker with a group that is not closed.
func closeKillsAndRemoves(t *testing.T, tracker *Tracker, group Group, dir string) {
	t.Helper()
	if _, err := group.MakeDir(); err != nil {
		t.Fatal(err)
	}
	pids := proctest.StartIn(t, group.Start, proctest.Helper("daemon"))
	if err := tracker.Close(); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left in the state directory: %v", left)
	}
	if err := group.Close(); err != nil {
		t.Errorf("close the group after its tracker: %v", err)
	}
}

func TestTracker_ReportsWhyThereIsNoGuarantee(t *testing.T) {
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
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "2"))
	if killed, err := group.Kill(proctest.Soon(t)); killed != len(pids) || err != nil {
		t.Errorf("killed %d of %d, %v", killed, len(pids), err)
	}
	proctest.MustBeGone(t, pids)
	if err := errors.Join(group.Close(), tracker.Close()); err != nil {
		t.Error(err)
	}
}

// A child that a dead sidecar was starting may hold its lock for a moment.
func TestSweepTwice_FindsAJournalThatWasLockedAtFirst(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	j, err := journal.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := j.Path()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			sweepTwice(t.Context(), Options{StateDir: dir})
		}()
		synctest.Wait() // it has swept once and waits
		if !proctest.Exist(path) {
			t.Error("a locked journal was swept")
		}
		if err := j.Leave(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	if proctest.Exist(path) {
		t.Error("the journal is left")
	}
}

func TestOpen_SeveralInOneProcess(t *testing.T) {
	t.Parallel()
	first, second := Open(Options{}), Open(Options{})
	if first.tree == nil || second.tree == nil {
		skipWithoutCgroups(t, errors.Join(first.reason, second.reason))
	}
	if first.tree.Dir() == second.tree.Dir() {
		t.Errorf("both have %s", first.tree.Dir())
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

func TestTracker_UsesSubreapersWithoutCgroups(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	tracker := &Tracker{
		reason: errors.New("read-only file system"), recovery: recovery{options: Options{StateDir: dir}},
	}
	var err error
	if tracker.subreapers, err = subreaper.Open(subreaperCommand, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	got := group.Tracking()
	if got != tracker.Tracking() || got.Mechanism != MechanismSubreaper || got.Guarantee ||
		!strings.Contains(got.Detail, "read-only file system") || got.Fix == "" {
		t.Errorf("tracking is %+v", got)
	}
	if inDomain := got.InSignalDomain(); !inDomain.Guarantee || inDomain.Fix != "" ||
		inDomain.Mechanism != MechanismSubreaper {
		t.Errorf("in a signal domain: %+v", inDomain)
	}
	closeKillsAndRemoves(t, tracker, group, dir)
}

// subreaperCommand runs the test binary as a subreaper.
func subreaperCommand() (string, []string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path, []string{path, "subreaper"}
}

// The fix in the reply must be able to help: systemd-run needs the very systemd
// that did not answer.
func TestTracking_FixNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	if with, without := fixCgroup(true), fixCgroup(false); !strings.Contains(with, "systemd-run --user") ||
		strings.Contains(without, "systemd") || without == "" {
		t.Errorf("fixes: %q, %q", with, without)
	}
	for _, test := range []struct {
		reason  error
		mention string
	}{
		{unix.EACCES, fixCgroup(systemdRuns())},
		{
			&cgroup.ScopeError{Refused: unix.EACCES, Failures: []error{errors.New("the bus is out of order")}},
			"XDG_RUNTIME_DIR",
		},
	} {
		got := (&Tracker{reason: test.reason}).Tracking()
		if got.Guarantee || got.Mechanism != MechanismProcessGroup || !strings.Contains(got.Fix, test.mention) ||
			!strings.Contains(got.Detail, test.reason.Error()) {
			t.Errorf("reason %v: %+v, expected a fix with %q", test.reason, got, test.mention)
		}
	}
}

// immortal is a group whose processes survive every kill.
type immortal struct{ Group }

func (immortal) Kill(context.Context) (int, error) { return 0, &proc.Survivors{} }

// The journal of a session with survivors stays, for the next sidecar.
func TestLinger_KeepsTheJournalOfSurvivors(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	tracker := &Tracker{reason: errors.New("none"), recovery: recovery{options: Options{StateDir: dir}}}
	group, err := tracker.NewGroup("g")
	if err != nil {
		t.Fatal(err)
	}
	private, err := group.MakeDir()
	if err != nil {
		t.Fatal(err)
	}
	tracker.Linger(immortal{group})
	if err := tracker.Close(); !errors.Is(err, ErrSurvivors) {
		t.Errorf("close says %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 || !proctest.Exist(private) {
		t.Errorf("left in the state directory: %v", left)
	}
	if err := errors.Join(group.Close(), tracker.recovery.close()); err != nil {
		t.Error(err)
	}
}
