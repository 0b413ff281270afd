package subreaper

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The sweep continues a dead sidecar's subreaper that was stopped. If the
// subreaper was killed with its sidecar, the session id is left.
func TestSweep_EndsTheSessionsOfSubreapers(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(*Group) error{
		"stopped": func(g *Group) error { return unix.Kill(g.subreaper.PID, unix.SIGSTOP) },
		"killed":  func(g *Group) error { return unix.Kill(g.subreaper.PID, unix.SIGKILL) },
		"alive":   func(*Group) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.StateDir(t)
			j, err := journal.New(dir)
			if err != nil {
				t.Fatal(err)
			}
			group := testSubreapers(t).NewGroup(j.Write)
			pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "3"))
			if err := does(group); err != nil {
				t.Fatal(err)
			}
			// The sidecar dies.
			group.closing.Store(true)
			group.conn.file.Close()
			if err := j.Leave(); err != nil {
				t.Fatal(err)
			}
			// A child that another test forks just now shares the journal's
			// lock until it execs.
			harness.Eventually(t, "the journal is carried out", func() bool {
				if err := journal.Sweep(proctest.Soon(t), dir, []journal.Ender{Ender, session.Ender}); err != nil {
					t.Fatal(err)
				}
				left, _ := os.ReadDir(dir)
				return len(left) == 0
			})
			proctest.MustBeGone(t, append(pids, group.subreaper.PID))
			<-group.gone
		})
	}
}

// Processes that have left the session id are known as long as the subreaper
// lives. They are found again if somebody kills it in the middle of its work.
func TestEndMembers_FindsDescendantsOfADeadSubreaper(t *testing.T) {
	t.Parallel()
	k := testSubreapers(t)
	group := k.NewGroup(nil)
	pids := proctest.StartIn(t, group.Start, proctest.Helper("daemon"))
	members, err := membersBelow(group.subreaper)
	if err != nil {
		t.Fatal(err)
	}
	group.closing.Store(true)
	if err := unix.Kill(group.subreaper.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-group.gone
	orphan := pids[len(pids)-1]
	if !proctest.Running(orphan) {
		t.Fatal("the daemon is dead already: this test shows nothing")
	}
	if err := endMembers(proctest.Soon(t), members); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
	if err := group.Close(); err != nil {
		t.Error(err)
	}
}

// A subreaper in a journal is ended only if the number is proved to be its own.
func TestSweep_NeverEndsAnotherProcessAsASubreaper(t *testing.T) {
	t.Parallel()
	right := journal.Here()
	otherBoot, otherNamespace := right, right
	otherBoot.Boot, otherNamespace.PIDNamespace = "00000000-0000-4000-8000-000000000000", "pid:[1]"
	for _, test := range []struct {
		name   string
		origin journal.Origin
		later  uint64
		dies   bool
	}{
		{"all right", right, 0, true},
		{"another boot", otherBoot, 0, false},
		{"another process id namespace", otherNamespace, 0, false},
		{"another start time", right, 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := proctest.StateDir(t)
			others := proctest.StartIn(t, proc.Start, proctest.Helper("tree", "1"))
			t.Cleanup(func() {
				for _, pid := range others {
					_ = unix.Kill(pid, unix.SIGKILL)
				}
			})
			entry, err := proc.Find(others[0])
			if err != nil {
				t.Fatal(err)
			}
			proctest.Forge(t, dir, journal.Record{Origin: &test.origin},
				journal.NewRecord(kind, strconv.Itoa(others[0]), recordData{Birth: entry.Birth + test.later}))
			err = journal.Sweep(proctest.Soon(t), dir, []journal.Ender{Ender})
			if test.dies {
				if proctest.MustBeGone(t, others); err != nil {
					t.Error(err)
				}
				return
			}
			proctest.MustRun(t, others, err)
		})
	}
}
