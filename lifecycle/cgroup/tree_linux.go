package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Tree is this process's subtree: <our cgroup>/sandbox-sidecar-<pid>-<start
// time>/<group>. Pid and start time together are never used twice while the
// machine runs, so a directory identifies its owner.
type Tree struct {
	dir  string
	note func(journal.Record) error
	held *os.File // dir, locked as long as this process lives; nil if it could not be opened
	// bornInside is true if a child can be started directly in a cgroup (clone3
	// with CLONE_INTO_CGROUP, Linux 5.7). On kernels with the fault that
	// selfTest looks for, a child is moved instead.
	bornInside bool
	remaking   sync.Mutex // guards held once the tree is open
	scoped     bool       // our cgroup is a scope that this process moved itself into
	// controllers are those that groups have, and unlimited says why it is not
	// all that limit sessions.
	controllers []string
	unlimited   error
	changes     changes
	aside       *aside // where this process has moved; nil if it has not
}

// trees counts the names that this process has tried for its trees.
var trees atomic.Int64

// openCgroupTree makes the subtree, after its name was noted.
func openCgroupTree(note func(journal.Record) error) (*Tree, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	name, err := ownName()
	if err != nil {
		return nil, err
	}
	tree := &Tree{note: note}
	tree.wantControllers(own)
	// A second tracker in this process (in a test, for example) gets a
	// directory of its own, and never notes the first one's. No name is given
	// again: who closes a tree that was removed already must not end another.
	for removed := 0; ; {
		tree.dir = filepath.Join(own, name)
		if i := trees.Add(1); i > 1 {
			tree.dir += "-" + strconv.FormatInt(i-1, 10)
		}
		if _, err := os.Lstat(tree.dir); err == nil {
			continue
		}
		err := tree.make()
		if err == nil {
			break
		}
		if errors.Is(err, fs.ErrNotExist) {
			removed++
		}
		if removed == mostRemakes || !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := tree.selfTest(); err != nil {
		_ = os.Remove(tree.dir)
		tree.letGo()
		return nil, err
	}
	return tree, nil
}

// ownName begins the names of this process's subtrees.
func ownName() (string, error) {
	start, err := proc.StartTime(os.Getpid())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf(treePrefix+"%d-%s", os.Getpid(), start), nil
}

// make makes the subtree's directory after noting its name, and then notes its
// inode.
func (t *Tree) make() error {
	if err := t.note(journal.NewRecord(kind, t.dir, recordData{})); err != nil {
		return err
	}
	if err := os.Mkdir(t.dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	if err := t.hold(); err != nil {
		_ = os.Remove(t.dir)
		return err
	}
	t.handDown()
	return nil
}

// hold notes the directory's inode and locks it. The lock shows sidecars in
// other process id namespaces that we live; see sweepCgroups.
func (t *Tree) hold() error {
	t.letGo()
	held, err := os.Open(t.dir)
	if err != nil {
		return fmt.Errorf("open cgroup: %w", err)
	}
	t.held = held
	lockSoon(held)
	var stat, now unix.Stat_t
	if err := unix.Fstat(int(held.Fd()), &stat); err != nil {
		return fmt.Errorf("open cgroup: %w", err)
	}
	// A sweep that had the lock may have removed it. No later one does.
	if err := unix.Stat(t.dir, &now); err != nil || now.Ino != stat.Ino {
		return fmt.Errorf("open cgroup: somebody has removed it: %w", fs.ErrNotExist)
	}
	return t.note(journal.NewRecord(kind, t.dir, recordData{Inode: stat.Ino}))
}

// lockTimeout bounds the wait for a sweep, which holds the lock while it looks for
// processes. Anybody else could hold it for ever.
const lockTimeout = 200 * time.Millisecond

// lockSoon locks the directory, unless somebody keeps the lock. Then the name
// still shows that we live, where our process id is seen.
func lockSoon(held *os.File) {
	for end := time.Now().Add(lockTimeout); journal.Lock(held, unix.LOCK_NB) != nil; {
		if time.Now().After(end) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (t *Tree) letGo() {
	if t.held != nil {
		t.held.Close()
		t.held = nil
	}
}

// kind is the kind of subtrees in a journal. The key is the directory, below
// which everything is to be killed and removed.
const kind = "cgroup"

// recordData is the data of a subtree in a journal.
type recordData struct {
	// Inode is the directory's number, which no other cgroup gets while the
	// machine runs. It is written once the directory was made.
	Inode uint64 `json:"inode,omitempty"`
}

// Ender ends the subtrees of a dead sidecar.
var Ender = journal.Ender{Kind: kind, End: endTrees}

func endTrees(ctx context.Context, records []journal.Record, where journal.Place) (alone int, err error) {
	if where.OtherBoot {
		return 0, nil // a cgroup of that name would be another's, as none outlives the machine
	}
	var failures []error
	for _, r := range records {
		var data recordData
		if err := r.Decode(&data); err != nil {
			alone++
			failures = append(failures, err)
			continue
		}
		failures = append(failures, endCgroup(ctx, r.Key, data.Inode, where.Same))
	}
	return alone, errors.Join(failures...)
}

// endCgroup kills and removes a dead sidecar's subtree. The name comes from a
// file, so it must be one of our names, in a cgroup v2, with the noted inode if
// there is one. If the inode and the origin are unknown, the name may be that
// of a living sidecar in another process id namespace; then its owner must be
// dead.
func endCgroup(ctx context.Context, dir string, inode uint64, sameOrigin bool) error {
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), treePrefix) {
		return fmt.Errorf("end cgroup %q: it has no name of ours", dir)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("end cgroup %q: not in a cgroup v2 (%w)", dir, err)
	}
	var stat unix.Stat_t
	switch err := unix.Stat(dir, &stat); {
	case errors.Is(err, unix.ENOENT), err == nil && inode != 0 && inode != stat.Ino:
		return nil // that directory is gone
	case err != nil:
		return fmt.Errorf("end cgroup: %w", err)
	}
	if !sameOrigin && inode == 0 {
		if owner, ok := treeOwner(filepath.Base(dir)); !ok || owner.lives() {
			return fmt.Errorf("end cgroup %q: its sidecar lives", dir)
		}
	}
	if _, err := killCgroup(ctx, dir); err != nil {
		return err
	}
	return removeCgroup(dir)
}

// treePrefix begins the names of subtrees.
const treePrefix = "sandbox-sidecar-"

// selfTest finds out whether a child can be started in a fresh cgroup and live.
// Kernels from 5.14 up to stable releases of 2026 kill it at birth if the
// parent's own cgroup was once killed by cgroup.kill. No version number tells
// which. The child's program does not exist: a living child reports that, a
// killed one reports nothing.
func (t *Tree) selfTest() error {
	group, err := t.NewGroup("self-test")
	if err != nil {
		return err
	}
	defer group.Close()
	attr := &syscall.ProcAttr{Sys: &syscall.SysProcAttr{}}
	t.bornInside = true
	group.attach(attr.Sys)
	pid, err := syscall.ForkExec("/proc/self/no-such-program", nil, attr)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return nil
	case err == nil:
		// ForkExec took the end of its error pipe for success; the child is
		// dead.
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		t.bornInside = false
		return nil
	case errors.Is(err, syscall.ENOSYS):
		t.bornInside = false // a container's filter refuses clone3; moving may still work
		return nil
	default:
		return fmt.Errorf("start a process in a cgroup: %w", err)
	}
}

// Dir is the directory of the subtree.
func (t *Tree) Dir() string { return t.dir }

// Detail describes what holds a session together.
func (t *Tree) Detail() string {
	detail := "the kernel kills every process of a session at once, by its cgroup"
	if t.scoped {
		detail += ", in a transient scope of the user's systemd"
	}
	return detail
}

// mostRemakes bounds how often NewGroup makes the tree again. Until the tree is
// locked, a sidecar in another process id namespace takes it for abandoned.
const mostRemakes = 5

// NewGroup makes a cgroup of that name below the tree. It makes the tree again if
// somebody has removed it, empty as it was.
func (t *Tree) NewGroup(name string) (*Group, error) {
	dir := filepath.Join(t.dir, name)
	handle, err := newDir(dir)
	for i := 0; i < mostRemakes && errors.Is(err, fs.ErrNotExist) && t.note != nil; i++ {
		handle, err = t.remake(dir)
	}
	if err != nil {
		return nil, err
	}
	return &Group{tree: t, dir: dir, handle: handle}, nil
}

// newDir makes a cgroup and opens it.
func newDir(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	handle, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		_ = os.Remove(dir)
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	return handle, nil
}

// remake makes the subtree again, and the directory in it.
func (t *Tree) remake(dir string) (*os.File, error) {
	t.remaking.Lock()
	defer t.remaking.Unlock()
	if err := t.make(); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return newDir(dir)
}

// closeTimeout bounds the last kill of everything. A process can outlast
// SIGKILL only in an uninterruptible system call.
const closeTimeout = 5 * time.Second

// Close kills what is left in the tree and removes it.
func (t *Tree) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if _, err := killCgroup(ctx, t.dir); err != nil {
		return err
	}
	defer t.letGo()
	defer t.changes.close()
	return removeCgroup(t.dir)
}

// Group is one cgroup. It is used once: a cgroup that was killed gets no new
// process (see selfTest).
type Group struct {
	tree *Tree
	dir  string

	mu      sync.Mutex // guards the fields below
	handle  *os.File   // O_PATH; nil once closed
	watched []int32    // by tree.changes
}

// Start starts a process that is in the cgroup before it executes anything.
func (g *Group) Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error) {
	if attr.Sys == nil {
		attr.Sys = &syscall.SysProcAttr{}
	}
	g.attach(attr.Sys)
	process, err := proc.StartLeader(path, argv, attr)
	if err != nil {
		return nil, err
	}
	if err := g.add(process.PID()); err != nil {
		proc.GiveUp(process)
		return nil, err
	}
	return process, nil
}

// FromBirth reports whether the kernel starts a process in the cgroup. Otherwise
// it is moved there once it has started.
func (g *Group) FromBirth() bool { return g.tree.bornInside }

// attach has a child that is started with attr be born in the group, if the
// kernel can do that.
func (g *Group) attach(attr *syscall.SysProcAttr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tree.bornInside && g.handle != nil {
		attr.UseCgroupFD = true
		attr.CgroupFD = int(g.handle.Fd())
	}
}

// add moves a child into the group that was not born there.
func (g *Group) add(pid int) error {
	if g.tree.bornInside {
		return nil
	}
	return writeCgroup(filepath.Join(g.dir, "cgroup.procs"), strconv.Itoa(pid))
}

// Kill kills every process of the cgroup and returns their number once it is empty.
func (g *Group) Kill(ctx context.Context) (int, error) { return killCgroup(ctx, g.dir) }

// Close removes the cgroup. Closing twice is harmless.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.handle == nil {
		return nil
	}
	_ = g.handle.Close()
	g.handle = nil
	g.tree.changes.remove(g.watched)
	return removeCgroup(g.dir)
}
