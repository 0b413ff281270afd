package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { proctest.Main(m, nil) }

// skip skips a test that needs cgroups, or fails it, by the rules of
// harness.Skip.
func skip(t *testing.T, cause error) {
	t.Helper()
	harness.Skip(t, "process_tracking", cause.Error())
}

// newTree opens a tree for one test, which must leave nothing behind.
func newTree(t *testing.T) *Tree {
	t.Helper()
	tree, err := openCgroupTree(func(journal.Record) error { return nil })
	if err != nil {
		skip(t, err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(tree.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", tree.dir, err)
		}
	})
	return tree
}

// A tree may be closed after a sweep has removed it. It must not end the next
// one.
func TestOpenCgroupTree_GivesNoNameAgain(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 3 {
		tree := newTree(t)
		if seen[tree.dir] {
			t.Errorf("%s is used again", tree.dir)
		}
		seen[tree.dir] = true
		if err := removeCgroup(tree.dir); err != nil {
			t.Error(err)
		}
	}
}

func newCgroup(t *testing.T, tree *Tree, name string) *Group {
	t.Helper()
	group, err := tree.NewGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// bothWays runs a test with children that are born in their cgroup, if the
// kernel can do that, and with children that are moved there.
func bothWays(t *testing.T, run func(*testing.T, *Tree)) {
	t.Helper()
	for _, born := range []bool{true, false} {
		t.Run(fmt.Sprintf("born inside %t", born), func(t *testing.T) {
			t.Parallel()
			tree := newTree(t)
			if born && !tree.bornInside {
				harness.Skip(t, "clone_into_cgroup", "children cannot be born in a cgroup here")
			}
			tree.bornInside = born
			run(t, tree)
		})
	}
}

// mustKill kills a group that holds at least these processes, and closes it
// twice.
func mustKill(t *testing.T, group *Group, pids []int) {
	t.Helper()
	members, err := cgroupMembers(group.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if !slices.Contains(members, pid) {
			t.Errorf("process %d is not in the group: %v", pid, members)
		}
	}
	start := time.Now()
	killed, err := group.Kill(proctest.Soon(t))
	if err != nil || killed < len(pids) {
		t.Errorf("killed %d of %d in %s: %v", killed, len(pids), time.Since(start), err)
	}
	proctest.MustBeGone(t, append(members, pids...))
	mustCloseTwice(t, group)
}

func mustCloseTwice(t *testing.T, group *Group) {
	t.Helper()
	for range 2 {
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(group.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", group.dir, err)
	}
	if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
		t.Errorf("killing a closed group: %d, %v", killed, err)
	}
}

func TestCgroup_KillsDaemonsThatHaveLeftTheSession(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *Tree) {
		group := newCgroup(t, tree, "g")
		pids := proctest.StartIn(t, group.Start, proctest.Helper("daemon"))
		orphan := pids[len(pids)-1]
		if len(pids) < 2 || !proctest.Running(orphan) {
			t.Fatalf("no daemon was left: %v", pids)
		}
		if sid, err := unix.Getsid(orphan); err != nil || sid == pids[0] {
			t.Fatalf("the daemon has not left its session: %d, %v", sid, err)
		}
		mustKill(t, group, []int{orphan})
	})
}

func TestCgroup_KillsATreeOfAHundred(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *Tree) {
		group := newCgroup(t, tree, "g")
		mustKill(t, group, proctest.StartIn(t, group.Start, proctest.Helper("tree", "99")))
	})
}

func TestCgroup_KillsStoppedProcesses(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *Tree) {
		group := newCgroup(t, tree, "g")
		pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "3"))
		for _, pid := range pids {
			harness.Stop(t, pid)
		}
		mustKill(t, group, pids)
	})
}

func TestCgroup_KillsChainsThatRespawnInSessionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *Tree) {
		group := newCgroup(t, tree, "g")
		proctest.StartIn(t, group.Start, proctest.Helper("respawn", "200", "200", "setsid"))
		if _, err := group.Kill(proctest.Soon(t)); err != nil {
			t.Error(err)
		}
		mustCloseTwice(t, group) // the kernel refuses to remove a cgroup that is not empty
	})
}

func TestCgroup_KillsProcessesInNestedCgroups(t *testing.T) {
	t.Parallel()
	bothWays(t, func(t *testing.T, tree *Tree) {
		group := newCgroup(t, tree, "g")
		pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "2"))
		below := filepath.Join(group.dir, "below", "deeper")
		if err := os.MkdirAll(below, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := writeCgroup(filepath.Join(below, "cgroup.procs"), strconv.Itoa(pids[1])); err != nil {
			t.Fatal(err)
		}
		mustKill(t, group, pids)
	})
}

func TestCgroup_KillsWithoutCgroupKill(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	group := newCgroup(t, tree, "g")
	pids := proctest.StartIn(t, group.Start, proctest.Helper("tree", "5"))
	events, err := os.Open(filepath.Join(group.dir, "cgroup.events"))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	// The second round kills a process that has come after the first: nothing
	// may have been left frozen.
	for range 2 {
		if err := freezeAndKill(proctest.Soon(t), group.dir, events); err != nil {
			t.Error(err)
		}
		proctest.MustBeGone(t, pids)
		pids = proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	}
	mustKill(t, group, pids)
	mustCloseTwice(t, group)
}

func TestCgroup_NamesSurvivorsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, newTree(t), "g")
	pids := proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	events, err := os.Open(filepath.Join(group.dir, "cgroup.events"))
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	// Nothing was killed, as if nothing could be.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = awaitEmpty(ctx, group.dir, events)
	if !errors.Is(err, proc.ErrSurvivors) || !strings.Contains(err.Error(), strconv.Itoa(pids[0])) {
		t.Errorf("error is %v, want one that names %d", err, pids[0])
	}
	if err := group.Close(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a group that is not empty is closed: %v", err)
	}
	mustKillAgain(t, group, pids)
}

// mustKillAgain kills a group whose Close has failed.
func mustKillAgain(t *testing.T, group *Group, pids []int) {
	t.Helper()
	if killed, err := group.Kill(proctest.Soon(t)); err != nil || killed != len(pids) {
		t.Errorf("killed %d: %v", killed, err)
	}
	proctest.MustBeGone(t, pids)
}

func TestCgroup_EmptyGroup(t *testing.T) {
	t.Parallel()
	group := newCgroup(t, newTree(t), "g")
	if killed, err := group.Kill(proctest.Soon(t)); killed != 0 || err != nil {
		t.Errorf("killed %d, %v", killed, err)
	}
	mustCloseTwice(t, group)
	var attr syscall.SysProcAttr
	if group.attach(&attr); attr.UseCgroupFD {
		t.Error("a closed group hands out its descriptor")
	}
}

func TestCgroup_NamesAreUsedOnce(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	newCgroup(t, tree, "g")
	if _, err := tree.NewGroup("g"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error is %v", err)
	}
}

func TestCgroup_ClosingTheTreeKillsEveryGroup(t *testing.T) {
	t.Parallel()
	tree := newTree(t)
	first, second := newCgroup(t, tree, "first"), newCgroup(t, tree, "second")
	pids := proctest.StartIn(t, first.Start, proctest.Helper("daemon"))
	pids = append(pids, proctest.StartIn(t, second.Start, proctest.Helper("tree", "3"))...)
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
	mustCloseTwice(t, first)
	mustCloseTwice(t, second)
}

// A sidecar may be killed between any two system calls. The journal must list
// what it makes before it exists, and nothing else. Not in parallel: other trees
// of this process would make the directory meanwhile.
func TestTree_NotesItsDirectoryFirst(t *testing.T) {
	var noted []string
	tree, err := openCgroupTree(func(r journal.Record) error {
		switch _, err := os.Lstat(r.Key); {
		case inode(t, r) == 0 && !errors.Is(err, fs.ErrNotExist):
			t.Errorf("%s is noted when it is there already", r.Key)
		case inode(t, r) != 0 && err != nil:
			t.Errorf("%s is noted as %d when it is not there", r.Key, inode(t, r))
		}
		noted = append(noted, r.Key)
		return nil
	})
	if err != nil {
		skip(t, err)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	if len(noted) == 0 || noted[len(noted)-1] != tree.dir {
		t.Errorf("%q were noted for %s", noted, tree.dir)
	}

	full, refused := errors.New("no space left on device"), ""
	_, err = openCgroupTree(func(r journal.Record) error { refused = r.Key; return full })
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(refused); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s was made without a note", refused)
	}
}

func TestWriteCgroup_NeverCreatesAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cgroup.kill")
	if err := writeCgroup(path, "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("an ordinary file was made")
	}
}
