package denials

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Most calls concern files that the session may change, or files that do not
// exist, and the caller waits for the answer. The fast path checks the path as
// the caller wrote it. Decider, if there is one, has answered the simplest of
// these calls before. See docs/design/predicted-denials.md.

// FastPath returns a handler that lets a call of that name continue at once if
// the call cannot be denied. It returns false otherwise; SlowPath then handles
// the call. It never waits for a file system of another machine or process. It
// may read from this machine's disks, and it reads the caller's memory.
func FastPath(o *Observer, name string) func(*notify.Call) bool {
	list, moves := pathArgs()[name], slices.Contains(linkMoving, name)
	return func(call *notify.Call) bool {
		if !o.started.Load() {
			if o.isCanary(call, name) {
				return false
			}
			if name == "execve" {
				o.start() // the stage itself reports why the target cannot start
			}
			call.Continue()
			return true
		}
		if mayChange(call, list) {
			if o.openDevice(call, list) {
				return true
			}
			o.NoteChange()
		}
		if moves {
			o.forget(time.Now())
		}
		for _, u := range list {
			w, readable := o.literalPath(call, name, u)
			if !readable || w.name != "" && (o.missing.concerns(w.request, w.name) || !o.harmless(w)) {
				return false
			}
			if o.makesInGit(name, w.name) && !o.plainInGit(call, name) {
				return false
			}
		}
		call.Continue()
		return true
	}
}

// start notes that the stage executes its target.
func (o *Observer) start() {
	o.started.Store(true)
	atomic.StoreUint32(&o.begun, 1)
}

// isCanary reports whether a call opens the canary.
func (o *Observer) isCanary(call *notify.Call, name string) bool {
	if name != "openat" || o.options.Canary == "" {
		return false
	}
	text, err := call.Text(call.Args[1])
	return err == nil && text == o.options.Canary
}

// linkMoving lists the calls after which a symlink may lead elsewhere, because
// the symlink or a directory above it has changed.
var linkMoving = []string{"symlink", "symlinkat", "link", "linkat", "rename", "renameat", "renameat2"}

// literalPath is one path argument as the caller wrote it, made absolute. If
// name is empty, nothing about the argument can be denied.
type literalPath struct {
	request
	name string
}

// literalPath reads a path argument of a call. It returns false if the path
// cannot be checked as it is written.
func (o *Observer) literalPath(call *notify.Call, name string, u pathArg) (literalPath, bool) {
	text, err := call.Text(call.Args[u.path])
	if err != nil {
		return literalPath{}, o.free() // the slow path cannot read it either, and may have to refuse it
	}
	flags, _, err := flagsOf(call, name, u)
	if err != nil {
		return literalPath{}, o.free()
	}
	w := newRequest(u.op, flags)
	if text == "" || w.exempt {
		return literalPath{}, true
	}
	if !strings.HasPrefix(text, "/") {
		link := fmt.Sprintf("/proc/%d/cwd", call.TID)
		if u.dir != workDir && int32(call.Args[u.dir]) != unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/fd/%d", call.TID, int32(call.Args[u.dir]))
		}
		from, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(from, "/") {
			return literalPath{}, false
		}
		text = from + "/" + text
	}
	if strings.Contains(text+"/", "/../") || mayHaveOtherRoot && otherRoot(call.TID) {
		return literalPath{}, false
	}
	// A trailing slash makes the kernel follow a symlink before it.
	w.follow = w.follow || strings.HasSuffix(text, "/") || strings.HasSuffix(text, "/.")
	text = path.Clean(text)
	if w.follow {
		text = o.resolved(text)
	}
	return literalPath{request: w, name: text}, true
}

// harmless reports whether nothing about a path can be denied.
func (o *Observer) harmless(w literalPath) bool {
	granted := o.grants(w.request, w.name)
	o.rootMu.RLock()
	defer o.rootMu.RUnlock()
	switch {
	case o.rootFD < 0:
		return false
	case granted && !w.follow:
		return o.isPlainDir(path.Dir(w.name))
	case !granted && w.makes():
		return false
	}
	switch o.stateOf(w.name) {
	case stateAbsent:
		return !o.options.Policy.IsHidden(w.name)
	case statePlain:
		return granted
	}
	return false
}

// makes reports whether the request can be denied if nothing exists at the
// path.
func (w request) makes() bool {
	return w.op == opCreate || w.op == opLink || w.op == opOpen && w.flags.has(unix.O_CREAT)
}

// mayHaveOtherRoot is true if programs in sessions may change their root
// directory: chroot(2) needs a capability that only root's sessions have.
var mayHaveOtherRoot = os.Geteuid() == 0

func otherRoot(tid int) bool {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", tid))
	return err != nil || root != "/"
}

// grants reports whether the policy grants a request, whatever exists at the
// path.
func (o *Observer) grants(w request, name string) bool {
	p := o.options.Policy
	at, above := needs(w.op, w.flags)
	return p.At(name).Has(at) && (above == 0 || p.At(path.Dir(name)).Has(above))
}

// pathState is what is known about a path.
type pathState int

const (
	stateUnknown pathState = iota // finding out would wait, or a symlink is on the way
	stateAbsent
	statePlain
)

// The lookup first uses only what the kernel has in memory (RESOLVE_CACHED,
// Linux 5.12), so it waits for no file system. If that fails, it reads from the
// disk, but only on a local file system and without leaving it.
const (
	inMemory    = unix.RESOLVE_NO_SYMLINKS | resolveCached
	onThisMount = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV

	resolveCached = 0x20 // RESOLVE_CACHED (linux/openat2.h)
)

// maxInMemoryTries bounds the retries: the kernel also answers EAGAIN while any
// process mounts something.
const maxInMemoryTries = 3

func (o *Observer) openInMemory(name string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: inMemory}
	for range maxInMemoryTries {
		if fd, err = unix.Openat2(o.rootFD, "."+name, &how); !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// isPlainDir reports whether no symlink leads to a directory, or the directory
// does not exist. o.rootMu must be held for reading.
func (o *Observer) isPlainDir(dir string) bool {
	fd, err := o.openInMemory(dir, unix.O_DIRECTORY)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil || errors.Is(err, unix.ENOENT)
}

// stateOf looks up a path. o.rootMu must be held for reading.
func (o *Observer) stateOf(name string) pathState {
	fd, err := o.openInMemory(name, 0)
	if errors.Is(err, unix.EAGAIN) {
		return o.stateOnDisk(name)
	}
	switch {
	case err == nil:
		unix.Close(fd)
		return statePlain
	case errors.Is(err, unix.ENOENT):
		return stateAbsent
	}
	return stateUnknown // ELOOP: a symlink
}

func (o *Observer) stateOnDisk(name string) pathState {
	dir, base := path.Split(name)
	if base == "" {
		return stateUnknown
	}
	parent, err := o.openInMemory(dir, unix.O_DIRECTORY)
	if err != nil {
		return stateUnknown
	}
	defer unix.Close(parent)
	if local, known := o.knownLocal(parent); !known || !local {
		return stateUnknown
	}
	fd, err := unix.Openat2(parent, base, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: onThisMount,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return stateAbsent
	case err != nil:
		return stateUnknown
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return stateUnknown
	}
	return statePlain
}

// mountID identifies the mount that a file is on. Linux 6.8 and newer give a
// mount number that is never reused. Older kernels give the device number,
// which is usable only for real devices: other file systems' numbers are
// reused.
type mountID struct {
	mount        uint64
	major, minor uint32
}

// mountOf returns the mount of an open file, without waiting for its file
// system.
func mountOf(fd int) (m mountID, ok bool) {
	var stat unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_MNT_ID_UNIQUE,
		&stat) != nil {
		return mountID{}, false
	}
	if stat.Mask&unix.STATX_MNT_ID_UNIQUE != 0 {
		return mountID{mount: stat.Mnt_id}, true
	}
	return mountID{major: stat.Dev_major, minor: stat.Dev_minor}, stat.Dev_major != 0
}

// knownLocal returns what was found out before about the file system of an open
// file.
func (o *Observer) knownLocal(fd int) (local, known bool) {
	m, ok := mountOf(fd)
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	local, known = o.local[m]
	return local, ok && known
}

// localFileSystems answer without another machine or process (linux/magic.h).
// For an overlay this depends on its layers.
var localFileSystems = []int64{
	unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.RAMFS_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1,
	0x2fc12fc1, // ZFS, which is not in the kernel's list
}

func isLocal(fd int) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && slices.Contains(localFileSystems, int64(uint32(stat.Type)))
}

// maxRemembered bounds each of the two caches.
const maxRemembered = 1024

// resolved returns the target of a path if it is known to contain a symlink.
// Programs execute /bin/sh all the time.
func (o *Observer) resolved(name string) string {
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	if real, known := o.targets[name]; known {
		return real
	}
	return name
}

// settleTime is how long after a call that moves symlinks the kernel may not
// have carried it out yet.
const settleTime = 50 * time.Millisecond

// forget clears the known symlink targets. A symlink that a process outside the
// session changes is trusted until then, which can falsify a report but grants
// nothing.
func (o *Observer) forget(now time.Time) {
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	clear(o.targets)
	o.moved = now
}

// remember caches what a later fast path needs: whether the directory's file
// system is local, and the path's target, if no symlink has moved since
// begun. Call it only for callers with the session's root. It may wait for a
// file system.
func (o *Observer) remember(root int, w request, loc *location, begun time.Time) {
	if loc.openParent(root) != nil {
		return
	}
	if _, known := o.knownLocal(loc.parent); !known {
		if m, ok := mountOf(loc.parent); ok {
			local := fsguard.Local(loc.parentPath) && isLocal(loc.parent)
			o.pathCache.mu.Lock()
			withRoom(o.local)[m] = local
			o.pathCache.mu.Unlock()
		}
	}
	name := path.Clean(loc.name)
	if !w.follow || !loc.exists() || loc.path == name || strings.Contains(loc.name+"/", "/../") ||
		strings.HasSuffix(loc.path, " (deleted)") {
		return
	}
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	if begun.Sub(o.moved) > settleTime {
		withRoom(o.targets)[name] = loc.path
	}
}

// withRoom returns the map, emptied if it is full.
func withRoom[K comparable, V any](m map[K]V) map[K]V {
	if len(m) >= maxRemembered {
		clear(m)
	}
	return m
}

// holdRoot keeps a descriptor of the root of the session's mounts, which the
// first caller provides.
func (o *Observer) holdRoot(root int) {
	o.rootMu.RLock()
	held := o.rootFD >= 0
	o.rootMu.RUnlock()
	if held {
		return
	}
	o.rootMu.Lock()
	defer o.rootMu.Unlock()
	if o.rootFD < 0 && !o.closed {
		if fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			o.rootFD = fd
		}
	}
}

// Close releases the observer's descriptors. No other method may be running.
func (o *Observer) Close() {
	o.rootMu.Lock()
	defer o.rootMu.Unlock()
	o.closed = true
	if o.rootFD >= 0 {
		unix.Close(o.rootFD)
		o.rootFD = -1
	}
}

// pathCache is what an observer has found out about the session's files.
type pathCache struct {
	rootMu sync.RWMutex // guards rootFD and closed; held for reading during a lookup
	rootFD int
	closed bool

	mu      sync.Mutex        // guards the fields below; held only to read or write them
	local   map[mountID]bool  // whether a mount's file system is local
	targets map[string]string // real paths of paths with symlinks, until the session moves a symlink
	moved   time.Time
}

func newPathCache() pathCache {
	return pathCache{local: map[mountID]bool{}, targets: map[string]string{}, rootFD: -1}
}
