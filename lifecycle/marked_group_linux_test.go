package lifecycle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/cgroup"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// Real processes that leave their session, and become children of init, are
// found and killed by what they carry alone. A cgroup takes the place of the
// fingerprint: it is inherited, cannot be removed, and can be read from
// outside.
func TestMarkedGroup_KillsProcessesWithTheMark(t *testing.T) {
	t.Parallel()
	tree, err := cgroup.Open(nil, func(journal.Record) error { return nil })
	if err != nil {
		skipWithoutCgroups(t, err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, args := range map[string][]string{
		"wait": nil, "tree": {"10"}, "daemon": nil, "respawn": {"300", "300", "setsid"},
	} {
		t.Run(name, func(t *testing.T) { killsByMark(t, tree, name, args) })
	}
}

func killsByMark(t *testing.T, tree *cgroup.Tree, name string, args []string) {
	marked, mark, pids := markedBy(t, tree, "mark-"+name, proctest.Helper(name, args...))
	other, _, spared := markedBy(t, tree, "other-"+name, proctest.Helper("wait"))
	carries := func(_ SessionFingerprint, pid int) (bool, error) {
		of, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup") // none if it has ended
		return strings.HasSuffix(strings.TrimSpace(string(of)), mark), nil
	}
	g := &markedGroup{fingerprint: SessionFingerprint{ID: "1"}, table: proc.Table, carries: carries}
	killed, err := g.killLoop(0).Run(proctest.Soon(t))
	if err != nil {
		t.Error(err)
	}
	// A chain that forks and exits at full speed may outrun the scans, which
	// take far longer here than on macOS. Each further loop must find what is
	// left.
	left, err := countMarked(carries)
	for rounds := 1; name == "respawn" && left > 0 && err == nil && rounds < 5; rounds++ {
		t.Logf("kill loop %d has left %d", rounds, left)
		if _, err = g.killLoop(0).Run(proctest.Soon(t)); err == nil {
			left, err = countMarked(carries)
		}
	}
	if err != nil || left > 0 {
		t.Errorf("%d are left, %v", left, err)
	}
	if name != "respawn" && len(killed) == 0 {
		t.Error("no process was killed")
	}
	proctest.MustBeGone(t, pids)
	for _, pid := range spared {
		if !proctest.Running(pid) {
			t.Error("another process was killed")
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	for _, group := range []*cgroup.Group{marked, other} {
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Error(err)
		}
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	}
}

// markedBy starts a command in a cgroup of its own, and returns the end of that
// cgroup's path.
func markedBy(t *testing.T, tree *cgroup.Tree, name string, command *exec.Cmd) (
	group *cgroup.Group, mark string, pids []int,
) {
	t.Helper()
	group, err := tree.NewGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	return group, filepath.Join(filepath.Base(tree.Dir()), name), proctest.StartIn(t, group.Start, command)
}

// countMarked counts the living processes that carry a mark.
func countMarked(carries func(SessionFingerprint, int) (bool, error)) (count int, err error) {
	table, err := proc.Table()
	for _, entry := range table {
		if is, _ := carries(SessionFingerprint{}, entry.PID); is && !entry.Dead {
			count++
		}
	}
	return count, err
}
