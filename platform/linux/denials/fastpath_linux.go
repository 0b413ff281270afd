package denials

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Most calls are about files that the session may change, or that are not
// there, and the caller waits. So the path is judged as it is written first,
// and where the policy grants that, and no symlink leads elsewhere, or nothing
// is there, the call goes on at once.

// First returns what answers calls of that name at once where that can be: it
// lets them go on. It asks no file system of another machine's or of a
// process's; what this machine's own have on their disks is read, and so is the
// caller's memory, wherever that comes from.
func FastPath(o *Observer, name string) func(*notify.Call) bool {
	list, moves := pathArgs[name], linkMoving[name]
	return func(call *notify.Call) bool {
		if !o.started.Load() {
			if o.isCanary(call, name) {
				return false
			}
			if name == "execve" {
				o.started.Store(true) // who starts the session learns from the stage why it does not start
			}
			call.Continue()
			return true
		}
		if moves {
			o.forget(time.Now())
		}
		for _, u := range list {
			if w, readable := o.literalPath(call, name, u); !readable || w.name != "" && !o.harmless(w) {
				return false
			}
		}
		call.Continue()
		return true
	}
}

// isCanary reports whether a call is the opening of the canary.
func (o *Observer) isCanary(call *notify.Call, name string) bool {
	if name != "openat" || o.options.Canary == "" {
		return false
	}
	text, err := call.Text(call.Args[1])
	return err == nil && text == o.options.Canary
}

// movesLinks are the calls after which a symlink may lead elsewhere, itself or
// a directory on its way.
var linkMoving = map[string]bool{
	"symlink": true, "symlinkat": true, "link": true, "linkat": true, "rename": true, "renameat": true, "renameat2": true,
}

// written is one path of a call, as it was written, from the caller's root. An
// empty name is none that could be refused.
type literalPath struct {
	request
	name string
}

// written reads a path of a call; false where it cannot be judged as it is
// written.
func (o *Observer) literalPath(call *notify.Call, name string, u pathArg) (literalPath, bool) {
	text, err := call.Text(call.Args[u.path])
	if err != nil {
		return literalPath{}, true // nobody will find out more
	}
	flags, _, err := flagsOf(call, name, u)
	if err != nil {
		return literalPath{}, true
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
	// What is behind a slash is looked for in what the name before it leads to.
	w.follow = w.follow || strings.HasSuffix(text, "/") || strings.HasSuffix(text, "/.")
	text = path.Clean(text)
	if w.follow {
		text = o.resolved(text)
	}
	return literalPath{request: w, name: text}, true
}

// harmless reports whether nothing about a path can be refused.
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
		return true
	case statePlain:
		return granted
	}
	return false
}

// makes reports whether something may be refused where nothing is.
func (w request) makes() bool {
	return w.op == opCreate || w.op == opLink || w.op == opOpen && w.flags.has(unix.O_CREAT)
}

// mayHaveOtherRoot is true where programs in sessions may change their root
// directory: chroot(2) needs a capability that only root's have.
var mayHaveOtherRoot = os.Geteuid() == 0

func otherRoot(tid int) bool {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", tid))
	return err != nil || root != "/"
}

// grants reports whether the policy grants a wish, whatever is there.
func (o *Observer) grants(w request, name string) bool {
	p := o.options.Policy
	at, above := p.At(name), policy.Access(0)
	if w.op == opOpen && !w.flags.has(unix.O_CREAT) || w.op == opExecute || w.op == opTruncate {
		above = policy.Write
	} else {
		above = p.At(path.Dir(name))
	}
	switch w.op {
	case opExecute:
		return at.Has(policy.Execute)
	case opOpen:
		needs := policy.Access(0)
		if w.flags.reads() {
			needs |= policy.Read
		}
		if w.flags.writes() || w.flags.has(unix.O_CREAT) {
			needs |= policy.Write
		}
		return at.Has(needs) && above.Has(policy.Write)
	default: // also of a name below it, so that it is not protected
		return at.Has(policy.Write) && above.Has(policy.Write)
	}
}

// seen is what a look at a name has found.
type pathState int

const (
	stateUnknown pathState = iota // it cannot be said without waiting, or a symlink leads there
	stateAbsent
	statePlain
)

// A look of ours asks for what the kernel has in memory (RESOLVE_CACHED, Linux
// 5.12), so that it waits for no file system. What is not there it looks for
// where the directory's own file system is this machine's, and does not leave
// that.
const (
	inMemory    = unix.RESOLVE_NO_SYMLINKS | resolveCached
	onThisMount = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV

	resolveCached = 0x20 // RESOLVE_CACHED (linux/openat2.h)
)

// inMemoryTries are how often it is asked again: the kernel also answers EAGAIN
// while anybody mounts something.
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

// isPlainDir reports whether no symlink leads to a directory, or nothing is
// there. o.rooted is held for reading.
func (o *Observer) isPlainDir(dir string) bool {
	fd, err := o.openInMemory(dir, unix.O_DIRECTORY)
	if err == nil {
		unix.Close(fd)
	}
	return err == nil || errors.Is(err, unix.ENOENT)
}

// whatIs looks at a name. o.rooted is held for reading.
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
	return stateUnknown // with ELOOP it is a symlink
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
	fd, err := unix.Openat2(parent, base, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: onThisMount})
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

// mounted tells where a file is: by a mount's number that is never used again
// (Linux 6.8), else by that of a device that is one. The numbers of file
// systems without a device are used again when they are gone.
type mountID struct {
	mount        uint64
	major, minor uint32
}

// mountOf asks for what is in memory.
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

// isKnown reports what was found out about the file system of a file.
func (o *Observer) knownLocal(fd int) (local, known bool) {
	m, ok := mountOf(fd)
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	local, known = o.local[m]
	return local, ok && known
}

// localFileSystems answer without another machine or process (linux/magic.h),
// an overlay as far as its layers do.
var localFileSystems = []int64{
	unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.RAMFS_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, 0x2fc12fc1, // ZFS, which is not in the kernel's list
}

func isLocal(fd int) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && slices.Contains(localFileSystems, int64(uint32(stat.Type)))
}

// mostRemembered bounds what is remembered, of each kind.
const maxRemembered = 1024

// leading is what a clean path leads to, where that is known to be another:
// programs execute /bin/sh all the time.
func (o *Observer) resolved(name string) string {
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	if real, known := o.targets[name]; known {
		return real
	}
	return name
}

// settling is for how long after a call that moves symlinks nobody knows
// whether it has been carried out.
const settleTime = 50 * time.Millisecond

// forget what paths lead to. Symlinks that somebody outside changes meanwhile
// are believed in until then.
func (o *Observer) forget(now time.Time) {
	o.pathCache.mu.Lock()
	defer o.pathCache.mu.Unlock()
	clear(o.targets)
	o.moved = now
}

// remember notes about a place of a caller that has the session's root what a
// later look needs: whether its directory is on a file system of this machine's
// own, and what the path leads to, if nothing has moved since the look began.
// It may wait.
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

// bounded is a map that can take one more.
func withRoom[K comparable, V any](m map[K]V) map[K]V {
	if len(m) >= maxRemembered {
		clear(m)
	}
	return m
}

// hold keeps the root of the session's mounts, which a caller has told.
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

// Close gives back what the observer holds, once nobody looks at a path any
// more.
func (o *Observer) Close() {
	o.rootMu.Lock()
	defer o.rootMu.Unlock()
	o.closed = true
	if o.rootFD >= 0 {
		unix.Close(o.rootFD)
		o.rootFD = -1
	}
}

// views are what an observer has found out about the session's files.
type pathCache struct {
	rootMu sync.RWMutex // guards what follows; who looks at a path holds it for reading
	rootFD int
	closed bool

	mu      sync.Mutex        // guards what follows, for no longer than it takes to read or write it
	local   map[mountID]bool  // whether file systems answer without another machine or process
	targets map[string]string // what paths with symlinks lead to, until the session moves one
	moved   time.Time
}

func newPathCache() pathCache {
	return pathCache{local: map[mountID]bool{}, targets: map[string]string{}, rootFD: -1}
}
