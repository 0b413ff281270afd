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
	// mostCgroupNames bounds how many names one sweep reads, and
	// mostCgroupRemovals how many subtrees it removes. The next sweep
	// continues.
	mostCgroupNames    = 10_000
	mostCgroupRemovals = 1000
)

// owner identifies the sidecar of a subtree, by the subtree's name.
type owner struct {
	pid   int
	start uint64
}

// treeOwner reads the name of a subtree; see Tree.
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

// lives reports whether the sidecar lives, or cannot be inspected.
func (o owner) lives() bool {
	entry, err := proc.Find(o.pid)
	if errors.Is(err, unix.ESRCH) {
		return false
	}
	return err != nil || entry.Birth == o.start && !entry.Dead
}

// SweepEmpty removes the empty subtrees beside this one whose sidecars are gone.
func (t *Tree) SweepEmpty(ctx context.Context) { sweepCgroups(ctx, filepath.Dir(t.dir)) }

// sweepCgroups removes the empty subtrees whose sidecars are gone, whether a
// journal names them or not. It kills nothing: without a journal nobody knows
// whose the processes are. A living sidecar in another process id namespace is
// recognised by its lock. If the lock cannot be seen either, that sidecar makes
// its subtree again.
func sweepCgroups(ctx context.Context, parent string) {
	dir, err := os.Open(parent)
	if err != nil {
		return
	}
	defer dir.Close()
	read, removed := 0, 0
	for read < mostCgroupNames && removed < mostCgroupRemovals {
		names, _ := dir.Readdirnames(256)
		if len(names) == 0 {
			return
		}
		for _, name := range names {
			if ctx.Err() != nil {
				return
			}
			read++
			if who, ok := treeOwner(name); ok && !who.lives() && removed < mostCgroupRemovals &&
				removeEmptyTree(filepath.Join(parent, name)) {
				removed++
			}
		}
	}
}

// mostCgroupsInTree bounds how many cgroups a subtree may have for the sweep to
// remove it.
const mostCgroupsInTree = 10_000

// removeEmptyTree removes a subtree without processes and without a lock, and
// reports whether it did.
func removeEmptyTree(dir string) bool {
	held, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer held.Close()
	var fs unix.Statfs_t
	if unix.Fstatfs(int(held.Fd()), &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC ||
		journal.Lock(held, unix.LOCK_NB) != nil {
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

// rmdirTree removes a cgroup and those below it. The kernel refuses to remove a
// cgroup with a process.
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
