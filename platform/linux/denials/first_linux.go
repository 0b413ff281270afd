package denials

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Most calls are about files that the session may change, and the caller waits. So the path is judged as it is written first, and where the
// policy grants that, and no symlink can lead elsewhere, the call goes on at once.

// First returns what answers calls of that name at once where that can be: it lets them go on. It does not wait for a file system.
func First(o *Observer, name string) func(*notify.Call) bool {
	list := uses[name]
	return func(call *notify.Call) bool {
		if !o.begun.Load() {
			return false
		}
		paths := make([]written, 0, 2)
		for _, u := range list {
			w, granted := o.written(call, name, u)
			if !granted {
				return false
			}
			if w.name != "" {
				paths = append(paths, w)
			}
		}
		if o.doubtful(paths) {
			return false
		}
		call.Continue()
		return true
	}
}

// written is one path of a call, as it was written, from the caller's root. An empty name is none that could be refused.
type written struct {
	wish
	name string
}

// written reads a path of a call; false where it is not granted as it is written, or cannot be judged so.
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
	text = path.Clean(text)
	return written{wish: w, name: text}, o.grants(w, text)
}

// mayHaveOtherRoot is true where programs in sessions may change their root directory: chroot(2) needs a capability that only root's have.
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

// doubtful reports whether one of the paths may lead elsewhere. A directory that was no symlink a moment ago is not looked at again. Its last
// name only matters to who follows it, and where the file system is this machine's own it is quicker to look than to have it looked at.
func (o *Observer) doubtful(list []written) bool {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	for _, w := range list {
		local, known := o.plain[path.Dir(w.name)]
		if !known || w.follow && (!local || !o.isPlain(w.name)) {
			return true
		}
	}
	return false
}

// isPlain reports whether what is there is no symlink, or nothing. o.mu is held.
func (o *Observer) isPlain(name string) bool {
	if o.rootFD < 0 {
		return false
	}
	var stat unix.Stat_t
	err := unix.Fstatat(o.rootFD, "."+name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	return errors.Is(err, unix.ENOENT) || err == nil && stat.Mode&unix.S_IFMT != unix.S_IFLNK
}

// localFileSystems answer without another machine or process (linux/magic.h).
var localFileSystems = []int64{
	unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.RAMFS_MAGIC, unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, 0x2fc12fc1, // ZFS, which is not in the kernel's list
}

func isLocal(fd int) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && slices.Contains(localFileSystems, int64(uint32(stat.Type)))
}

// mostPlain bounds the directories that are remembered.
const mostPlain = 1024

// remember notes that no symlink leads to the directory of a place.
func (o *Observer) remember(there *place) {
	fd := there.fd
	if fd < 0 {
		fd = there.parent
	}
	local := isLocal(fd)
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if len(o.plain) >= mostPlain {
		clear(o.plain)
	}
	o.plain[there.parentPath] = local
}

// hold keeps the root of the session's mounts, which a caller has told.
func (o *Observer) hold(root int) {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if o.rootFD < 0 && !o.closed {
		if fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			o.rootFD = fd
		}
	}
}

// Close gives back what the observer holds.
func (o *Observer) Close() {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	o.closed = true
	if o.rootFD >= 0 {
		unix.Close(o.rootFD)
		o.rootFD = -1
	}
}

// views are what an observer has found out about the session's files.
type views struct {
	mu     sync.Mutex      // guards the fields below
	plain  map[string]bool // directories without symlinks, and whether their file systems are local
	rootFD int
	closed bool
}
