//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func newSessionGroup() *sessionGroup {
	return &sessionGroup{tracking: Tracking{Mechanism: MechanismProcessGroup}}
}

func TestSessionGroup_KillsTheWholeTree(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "10"))
	if len(pids) != 11 {
		t.Fatalf("processes %v", pids)
	}
	killed, err := group.Kill(proctest.Soon(t))
	if err != nil || killed < len(pids) {
		t.Errorf("killed %d of %d: %v", killed, len(pids), err)
	}
	proctest.MustBeGone(t, pids)
	if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
		t.Errorf("a second kill killed %d: %v", killed, err)
	}
}

func TestSessionGroup_KillsStoppedProcesses(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "2"))
	for _, pid := range pids {
		harness.Stop(t, pid)
	}
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
}

func TestSessionGroup_KillsChainsThatStayInTheSession(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := proctest.StartIn(t, group.Start, proctest.Helper("respawn", "100", "100"))
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	// The chain may outrun a scan, because there is no guarantee. Each further
	// kill must end what it finds.
	for {
		left, err := sessionMembers(pids[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSessionGroup_KillReportsSurvivorsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	pids := proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := group.Kill(expired); !errors.Is(err, proc.ErrSurvivors) {
		t.Errorf("error is %v", err)
	}
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
}

func TestSessionGroup_EmptyGroupAndSecondLeader(t *testing.T) {
	t.Parallel()
	group := newSessionGroup()
	if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
		t.Errorf("an empty group: %d, %v", killed, err)
	}
	pids := proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	if err := group.add(1 << 30); err == nil {
		t.Error("a second leader is taken in")
	}
	if _, err := group.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
	for range 2 {
		if err := group.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if group.Tracking().Guarantee {
		t.Error("a session group guarantees nothing")
	}
}

func TestTable_MarksZombies(t *testing.T) {
	t.Parallel()
	command := proctest.Helper("wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pid := proctest.StartReady(command)[0]
	if members, err := sessionMembers(pid); err != nil || len(members) != 1 || members[0] != pid {
		t.Errorf("members are %v, %v", members, err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// It remains a zombie until it is waited for.
	if !deadline.Until(proctest.Timeout, func() bool { return !proctest.Running(pid) }) {
		t.Fatal("the process does not die")
	}
	if members, err := sessionMembers(pid); err != nil || len(members) > 0 {
		t.Errorf("a zombie counts: %v, %v", members, err)
	}
	_ = command.Wait()
}

// sessionMembers lists the living processes of a session.
func sessionMembers(sid int) ([]int, error) {
	table, err := proc.Table()
	var members []int
	for _, entry := range table {
		if entry.Session == sid && !entry.Dead {
			members = append(members, entry.PID)
		}
	}
	return members, err
}
