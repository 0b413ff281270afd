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
func First(o *Observer, name string) func(*notify.Call) bool {
	list, moves := uses[name], movesLinks[name]
	return func(call *notify.Call) bool {
		if !o.begun.Load() {
			if o.isCanary(call, name) {
				return false
			}
			if name == "execve" {
				o.begun.Store(true) // who starts the session learns from the stage why it does not start
			}
			call.Continue()
			return true
		}
		if moves {
			o.forget(time.Now())
		}
		for _, u := range list {
			if w, readable := o.written(call, name, u); !readable || w.name != "" && !o.harmless(w) {
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
var movesLinks = map[string]bool{
	"symlink": true, "symlinkat": true, "link": true, "linkat": true, "rename": true, "renameat": true, "renameat2": true,
}

// written is one path of a call, as it was written, from the caller's root. An
// empty name is none that could be refused.
type written struct {
	wish
	name string
}

// written reads a path of a call; false where it cannot be judged as it is
// written.
func (o *Observer) written(call *notify.Call, name string, u use) (written, bool) {
	text, err := call.Text(call.Args[u.path])
	if err != nil {
		return written{}, true // nobody will find out more
	}
	flags, _, err := flagsOf(call, name, u)
	if err != nil {
		return written{}, true
	}
	w := want(u.deed, flags)
	if text == "" || w.nothing {
		return written{}, true
	}
	if !strings.HasPrefix(text, "/") {
		link := fmt.Sprintf("/proc/%d/cwd", call.TID)
		if u.dir != workDir && int32(call.Args[u.dir]) != unix.AT_FDCWD {
			link = fmt.Sprintf("/proc/%d/fd/%d", call.TID, int32(call.Args[u.dir]))
		}
		from, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(from, "/") {
			return written{}, false
		}
		text = from + "/" + text
	}
	if strings.Contains(text+"/", "/../") || mayHaveOtherRoot && otherRoot(call.TID) {
		return written{}, false
	}
	// What is behind a slash is looked for in what the name before it leads to.
	w.follow = w.follow || strings.HasSuffix(text, "/") || strings.HasSuffix(text, "/.")
	text = path.Clean(text)
	if w.follow {
		text = o.leading(text)
	}
	return written{wish: w, name: text}, true
}

// harmless reports whether nothing about a path can be refused.
func (o *Observer) harmless(w written) bool {
	granted := o.grants(w.wish, w.name)
	o.rooted.RLock()
	defer o.rooted.RUnlock()
	switch {
	case o.rootFD < 0:
		return false
	case granted && !w.follow:
		return o.isPlainDir(path.Dir(w.name))
	case !granted && w.makes():
		return false
	}
	switch o.whatIs(w.name) {
	case absent:
		return true
	case plain:
		return granted
	}
	return false
}

// makes reports whether something may be refused where nothing is.
func (w wish) makes() bool {
	return w.deed == making || w.deed == placing || w.deed == opening && w.flags.has(unix.O_CREAT)
}

// mayHaveOtherRoot is true where programs in sessions may change their root
// directory: chroot(2) needs a capability that only root's have.
var mayHaveOtherRoot = os.Geteuid() == 0

func otherRoot(tid int) bool {
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", tid))
	return err != nil || root != "/"
}

// grants reports whether the policy grants a wish, whatever is there.
func (o *Observer) grants(w wish, name string) bool {
	p := o.options.Policy
	at, above := p.At(name), policy.Access(0)
	if w.deed == opening && !w.flags.has(unix.O_CREAT) || w.deed == executing || w.deed == cutting {
		above = policy.Write
	} else {
		above = p.At(path.Dir(name))
	}
	switch w.deed {
	case executing:
		return at.Has(policy.Execute)
	case opening:
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
type seen int

const (
	unknown seen = iota // it cannot be said without waiting, or a symlink leads there
	absent
	plain
)

// A look of ours asks for what the kernel has in memory (RESOLVE_CACHED, Linux
// 5.12), so that it waits for no file system. What is not there it looks for
// where the directory's own file system is this machine's, and does not leave
// that.
const (
	inMemory  = unix.RESOLVE_NO_SYMLINKS | resolveCached
	onThisOne = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV

	resolveCached = 0x20 // RESOLVE_CACHED (linux/openat2.h)
)

// inMemoryTries are how often it is asked again: the kernel also answers EAGAIN
// while anybody mounts something.
const inMemoryTries = 3

func (o *Observer) openInMemory(name string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: inMemory}
	for range inMemoryTries {
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
func (o *Observer) whatIs(name string) seen {
	fd, err := o.openInMemory(name, 0)
	if errors.Is(err, unix.EAGAIN) {
		return o.whatIsOnDisk(name)
	}
	switch {
	case err == nil:
		unix.Close(fd)
		return plain
	case errors.Is(err, unix.ENOENT):
		return absent
	}
	return unknown // with ELOOP it is a symlink
}

func (o *Observer) whatIsOnDisk(name string) seen {
	dir, base := path.Split(name)
	if base == "" {
		return unknown
	}
	parent, err := o.openInMemory(dir, unix.O_DIRECTORY)
	if err != nil {
		return unknown
	}
	defer unix.Close(parent)
	if local, known := o.isKnown(parent); !known || !local {
		return unknown
	}
	fd, err := unix.Openat2(parent, base, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: onThisOne})
	switch {
	case errors.Is(err, unix.ENOENT):
		return absent
	case err != nil:
		return unknown
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unknown
	}
	return plain
}

// mounted tells where a file is: by a mount's number that is never used again
// (Linux 6.8), else by that of a device that is one. The numbers of file
// systems without a device are used again when they are gone.
type mounted struct {
	mount        uint64
	major, minor uint32
}

// mountOf asks for what is in memory.
func mountOf(fd int) (m mounted, ok bool) {
	var stat unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE|unix.STATX_MNT_ID_UNIQUE,
		&stat) != nil {
		return mounted{}, false
	}
	if stat.Mask&unix.STATX_MNT_ID_UNIQUE != 0 {
		return mounted{mount: stat.Mnt_id}, true
	}
	return mounted{major: stat.Dev_major, minor: stat.Dev_minor}, stat.Dev_major != 0
}

// isKnown reports what was found out about the file system of a file.
func (o *Observer) isKnown(fd int) (local, known bool) {
	m, ok := mountOf(fd)
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
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
const mostRemembered = 1024

// leading is what a clean path leads to, where that is known to be another:
// programs execute /bin/sh all the time.
func (o *Observer) leading(name string) string {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if real, known := o.leads[name]; known {
		return real
	}
	return name
}

// settling is for how long after a call that moves symlinks nobody knows
// whether it has been carried out.
const settling = 50 * time.Millisecond

// forget what paths lead to. Symlinks that somebody outside changes meanwhile
// are believed in until then.
func (o *Observer) forget(now time.Time) {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	clear(o.leads)
	o.moved = now
}

// remember notes about a place of a caller that has the session's root what a
// later look needs: whether its directory is on a file system of this machine's
// own, and what the path leads to, if nothing has moved since the look began.
// It may wait.
func (o *Observer) remember(root int, w wish, there *place, begun time.Time) {
	if there.holdParent(root) != nil {
		return
	}
	if _, known := o.isKnown(there.parent); !known {
		if m, ok := mountOf(there.parent); ok {
			local := fsguard.Local(there.parentPath) && isLocal(there.parent)
			o.views.mu.Lock()
			bounded(o.local)[m] = local
			o.views.mu.Unlock()
		}
	}
	name := path.Clean(there.name)
	if !w.follow || !there.exists() || there.path == name || strings.Contains(there.name+"/", "/../") ||
		strings.HasSuffix(there.path, " (deleted)") {
		return
	}
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if begun.Sub(o.moved) > settling {
		bounded(o.leads)[name] = there.path
	}
}

// bounded is a map that can take one more.
func bounded[K comparable, V any](m map[K]V) map[K]V {
	if len(m) >= mostRemembered {
		clear(m)
	}
	return m
}

// hold keeps the root of the session's mounts, which a caller has told.
func (o *Observer) hold(root int) {
	o.rooted.RLock()
	held := o.rootFD >= 0
	o.rooted.RUnlock()
	if held {
		return
	}
	o.rooted.Lock()
	defer o.rooted.Unlock()
	if o.rootFD < 0 && !o.closed {
		if fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			o.rootFD = fd
		}
	}
}

// Close gives back what the observer holds, once nobody looks at a path any
// more.
func (o *Observer) Close() {
	o.rooted.Lock()
	defer o.rooted.Unlock()
	o.closed = true
	if o.rootFD >= 0 {
		unix.Close(o.rootFD)
		o.rootFD = -1
	}
}

// views are what an observer has found out about the session's files.
type views struct {
	rooted sync.RWMutex // guards what follows; who looks at a path holds it for reading
	rootFD int
	closed bool

	mu    sync.Mutex        // guards what follows, for no longer than it takes to read or write it
	local map[mounted]bool  // whether file systems answer without another machine or process
	leads map[string]string // what paths with symlinks lead to, until the session moves one
	moved time.Time
}

func newViews() views {
	return views{local: map[mounted]bool{}, leads: map[string]string{}, rootFD: -1}
}
