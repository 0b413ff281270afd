package cgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

const (
	// mostCgroupNames bounds how many names one sweep looks at, and
	// mostCgroupRemovals how many subtrees it removes. The next one goes on.
	mostCgroupNames    = 10_000
	mostCgroupRemovals = 1000
)

// owner is the sidecar of a subtree, by the subtree's name.
type owner struct {
	pid   int
	start uint64
}

// treeOwner reads the name of a subtree; see cgroupTree.
func treeOwner(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, treePrefix)
	fields := strings.Split(rest, "-")
	if !ok || len(fields) < 2 || len(fields) > 3 {
		return owner{}, false
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || pid < 1 {
		return owner{}, false
	}
	start, err := strconv.ParseUint(fields[1], 10, 64)
	if len(fields) == 3 {
		if _, numbered := strconv.ParseUint(fields[2], 10, 32); numbered != nil {
			return owner{}, false
		}
	}
	return owner{pid, start}, err == nil
}

// lives reports whether the sidecar is there, or cannot be looked at.
func (o owner) lives() bool {
	entry, err := proc.Find(o.pid)
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	return err != nil || entry.Birth == o.start && !entry.Dead
}

// SweepEmpty removes the empty subtrees beside this one whose sidecars are gone.
func (t *Tree) SweepEmpty(ctx context.Context) { sweepCgroups(ctx, filepath.Dir(t.dir)) }

// sweepCgroups removes the empty subtrees beside this sidecar's of which the
// sidecar is gone, whether a journal names them or not. Nothing is killed:
// without a journal nobody says whose the processes are. A sidecar in another
// process id namespace is known by its lock; should that not be seen either, it
// makes its subtree anew.
func sweepCgroups(ctx context.Context, parent string) {
	dir, err := os.Open(parent)
	if err != nil {
		return
	}
	defer dir.Close()
	looked, removed := 0, 0
	for looked < mostCgroupNames && removed < mostCgroupRemovals {
		names, _ := dir.Readdirnames(256)
		if len(names) == 0 {
			return
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			looked++
			if who, ok := treeOwner(name); ok && !who.lives() && removed < mostCgroupRemovals &&
				removeEmptyTree(filepath.Join(parent, name)) {
				removed++
			}
		}
	}
}

// mostCgroupsInTree bounds how many cgroups a subtree may have to be removed by
// the way.
const mostCgroupsInTree = 10_000

// removeEmptyTree removes a subtree without processes that nobody has locked,
// and reports whether it did.
func removeEmptyTree(dir string) bool {
	held, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer held.Close()
	var fs unix.Statfs_t
	if unix.Fstatfs(int(held.Fd()), &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC || journal.Lock(held, unix.LOCK_NB) != nil {
		return false
	}
	events, err := os.Open(filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false
	}
	defer events.Close()
	if populated, err := isPopulated(events); err != nil || populated {
		return false
	}
	left := mostCgroupsInTree
	return rmdirTree(dir, &left)
}

// rmdirTree removes a cgroup and those below it. A cgroup with a process cannot
// be removed.
func rmdirTree(dir string, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Is(err, unix.ENOENT)
	}
	for _, entry := range entries {
		if entry.IsDir() && !rmdirTree(filepath.Join(dir, entry.Name()), left) {
			return false
		}
	}
	return unix.Rmdir(dir) == nil
}
