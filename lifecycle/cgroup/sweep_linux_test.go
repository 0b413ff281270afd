package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A journal's cgroup is ended only if it is the one that was meant.
func TestSweep_NeverEndsAnotherCgroup(t *testing.T) {
	t.Parallel()
	right := journal.Here()
	otherBoot, otherNamespace := right, right
	otherBoot.Boot, otherNamespace.PIDNamespace = "00000000-0000-4000-8000-000000000000", "pid:[1]"
	for _, test := range []struct {
		name         string
		origin       *journal.Origin
		known, wrong bool // the directory's number
		dies         bool
	}{
		{"all right", &right, true, false, true},
		{"no number known", &right, false, false, true},
		{"another process id namespace, the number right", &otherNamespace, true, false, true},
		{"another process id namespace, no number known, the sidecar lives", &otherNamespace, false, false, false},
		{"a journal of an older version, the sidecar lives", nil, false, false, false},
		{"another number", &right, true, true, false},
		{"another boot", &otherBoot, true, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, tree := proctest.StateDir(t), newTree(t)
			pids := proctest.StartIn(t, newCgroup(t, tree, "g").Start, proctest.Helper("tree", "1"))
			var listed recordData
			var stat unix.Stat_t
			if err := unix.Stat(tree.dir, &stat); err != nil {
				t.Fatal(err)
			}
			if test.known {
				listed.Inode = stat.Ino
			}
			if test.wrong {
				listed.Inode++
			}
			proctest.Forge(t, dir, journal.Record{Origin: test.origin}, journal.NewRecord(kind, tree.dir, listed))
			err := journal.Sweep(proctest.Soon(t), dir, []journal.Ender{Ender})
			if test.dies {
				if proctest.MustBeGone(t, pids); err != nil || proctest.Exist(tree.dir) {
					t.Errorf("%v, there %t", err, proctest.Exist(tree.dir))
				}
				return
			}
			for _, pid := range pids {
				if !proctest.Running(pid) {
					t.Errorf("process %d is gone; the sweep reports: %v", pid, err)
				}
			}
		})
	}
}

// Empty cgroups of dead sidecars are removed without any journal. A cgroup with
// a process, a living sidecar or a locked directory stays.
func TestSweepCgroups(t *testing.T) {
	t.Parallel()
	home := newTree(t) // a cgroup of ours that takes the place of the one that sidecars are in
	gone := proctest.Helper("wait")
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	dead := gone.Process.Pid
	_ = gone.Process.Kill()
	_ = gone.Wait()
	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]string{}
	for what, name := range map[string]string{
		"empty":       fmt.Sprintf("%s%d-%d", treePrefix, dead, 77),
		"numbered":    fmt.Sprintf("%s%d-%d-3", treePrefix, dead, 77),
		"inhabited":   fmt.Sprintf("%s%d-%d", treePrefix, dead, 78),
		"locked":      fmt.Sprintf("%s%d-%d", treePrefix, dead, 79),
		"living":      fmt.Sprintf("%s%d-%s", treePrefix, os.Getpid(), start),
		"another's":   fmt.Sprintf("other-%d-%d", dead, 77),
		"not a name":  treePrefix + "x-y",
		"not a tree":  fmt.Sprintf("%s%d-%d.scope", treePrefix, dead, 77),
		"given again": fmt.Sprintf("%s%d-%d", treePrefix, os.Getpid(), 1),
	} {
		made[what] = filepath.Join(home.dir, name)
		if err := os.MkdirAll(filepath.Join(made[what], "session", "nested"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, dir := range made {
			if err := removeCgroup(dir); err != nil {
				t.Error(err)
			}
		}
	})
	inhabitant := newCgroup(t, &Tree{dir: made["inhabited"], bornInside: home.bornInside}, "g")
	pids := proctest.StartIn(t, inhabitant.Start, proctest.Helper("wait"))
	held, err := os.Open(made["locked"])
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := journal.Lock(held, unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	sweepCgroups(proctest.Soon(t), home.dir)
	for what, dir := range made {
		removed := what == "empty" || what == "numbered" || what == "given again"
		if proctest.Exist(dir) == removed {
			t.Errorf("%s: %s is there: %t", what, dir, proctest.Exist(dir))
		}
	}
	if !proctest.Running(pids[0]) {
		t.Error("a process was ended")
	}
	if _, err := inhabitant.Kill(proctest.Soon(t)); err != nil {
		t.Error(err)
	}
	if err := inhabitant.Close(); err != nil {
		t.Error(err)
	}
}

// If somebody removes a subtree while it is empty, it is made and noted again
// for the next session.
func TestCgroup_MakesARemovedTreeAgain(t *testing.T) {
	t.Parallel()
	var noted []journal.Record
	tree, err := openCgroupTree(func(r journal.Record) error { noted = append(noted, r); return nil })
	if err != nil {
		skip(t, err)
	}
	if err := removeCgroup(tree.dir); err != nil {
		t.Fatal(err)
	}
	before := len(noted)
	group := newCgroup(t, tree, "g")
	pids := proctest.StartIn(t, group.Start, proctest.Helper("wait"))
	var stat unix.Stat_t
	if err := unix.Stat(tree.dir, &stat); err != nil {
		t.Fatal(err)
	}
	if again := noted[before:]; len(again) != 2 || inode(t, again[0]) != 0 || inode(t, again[1]) != stat.Ino {
		t.Errorf("noted: %+v, and it is %d", again, stat.Ino)
	}
	if err := tree.Close(); err != nil {
		t.Error(err)
	}
	proctest.MustBeGone(t, pids)
}

// A sweep in another process id namespace takes a tree for abandoned that is not
// locked yet, and holds the lock itself while it removes it. The tree waits for
// that lock, and notices what has happened.
func TestCgroup_WaitsForASweepThatHasTheLock(t *testing.T) {
	t.Parallel()
	for _, removes := range []bool{false, true} {
		tree := newTree(t)
		tree.letGo()
		sweep, err := os.Open(tree.dir)
		harness.Must(t, err)
		lockSoon(sweep) // a child of another test may still have the tree's descriptor
		swept := make(chan error, 1)
		go func() {
			var err error
			if removes {
				err = os.Remove(tree.dir)
			}
			swept <- errors.Join(err, sweep.Close())
		}()
		err = tree.hold()
		harness.Must(t, <-swept)
		if removes != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("removed %t: %v", removes, err)
		}
		if !removes {
			other, err := os.Open(tree.dir)
			harness.Must(t, err)
			if journal.Lock(other, unix.LOCK_NB) == nil {
				t.Error("the tree is not locked after the sweep")
			}
			harness.Must(t, other.Close())
		}
		harness.Must(t, newCgroup(t, tree, "g").Close()) // it is made again
	}
}

// A sweep in another process id namespace may remove the subtree just when it was
// made again. That is tried a few times, not for ever.
func TestCgroup_MakesATreeAgainThatSomebodyKeepsRemoving(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ removals, made int }{{mostRemakes - 1, mostRemakes}, {mostRemakes, mostRemakes}} {
		removals, made, dir := 0, 0, ""
		tree, err := openCgroupTree(func(r journal.Record) error {
			if r.Key != dir || inode(t, r) == 0 {
				return nil
			}
			if made++; removals < test.removals { // it was made, and not filled
				removals++
				return os.Remove(dir)
			}
			return nil
		})
		if err != nil {
			skip(t, err)
		}
		dir = tree.dir
		if err := removeCgroup(dir); err != nil {
			t.Fatal(err)
		}
		group, err := tree.NewGroup("g")
		if succeeds := test.removals < mostRemakes; (err == nil) != succeeds || made != test.made {
			t.Errorf("%d removals: made %d times, %v", test.removals, made, err)
		}
		if group != nil {
			if err := group.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	}
}

// inode is the number in a record of a cgroup.
func inode(t *testing.T, r journal.Record) uint64 {
	t.Helper()
	var data recordData
	if err := r.Decode(&data); err != nil {
		t.Error(err)
	}
	return data.Inode
}
