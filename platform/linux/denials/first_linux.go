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

// Most calls are about files that the session may change, or that are not there, and the caller waits. So the path is judged as it is written
// first, and where the policy grants that, and no symlink can lead elsewhere, or nothing is there, the call goes on at once.

// First returns what answers calls of that name at once where that can be: it lets them go on. It does not wait for a file system.
func First(o *Observer, name string) func(*notify.Call) bool {
	list := uses[name]
	return func(call *notify.Call) bool {
		if !o.begun.Load() {
			if name == "execve" {
				o.begun.Store(true) // who starts the session learns from the stage why it does not start
			}
			call.Continue()
			return true
		}
		paths := make([]written, 0, 2)
		for _, u := range list {
			w, readable := o.written(call, name, u)
			if !readable || !w.granted && w.makes() {
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
	name    string
	granted bool // as it is written
}

// makes reports whether something may be refused where nothing is.
func (w wish) makes() bool {
	return w.deed == making || w.deed == placing || w.deed == opening && w.flags.has(unix.O_CREAT)
}

// written reads a path of a call; false where it cannot be judged as it is written.
func (o *Observer) written(call *notify.Call, name string, u use) (written, bool) {
	nobody := written{granted: true} // will find out more
	text, err := call.Text(call.Args[u.path])
	if err != nil {
		return nobody, true
	}
	flags, _, err := flagsOf(call, name, u)
	if err != nil {
		return nobody, true
	}
	w := want(u.deed, flags)
	if text == "" || w.nothing {
		return nobody, true
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
	text = o.unlinked(path.Clean(text))
	return written{wish: w, name: text, granted: o.grants(w, text)}, true
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

// doubtful reports whether one of the paths may lead elsewhere, or is of something that is not granted. A directory that was no symlink a
// moment ago is not looked at again. Its last name only matters to who follows it, and where the file system is this machine's own it is
// quicker to look than to have it looked at.
func (o *Observer) doubtful(list []written) bool {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	for _, w := range list {
		local, found := o.explore(path.Dir(w.name))
		switch {
		case found == absent: // and nothing is below it
		case found == unknown:
			return true
		case w.granted && !w.follow:
		case !local:
			return true
		default:
			if is := o.whatIs(w.name); is != absent && (is != plain || !w.granted) {
				return true
			}
		}
	}
	return false
}

// seen is what a look at a name has found.
type seen int

const (
	unknown seen = iota
	absent
	plain // no symlink is in it
)

// explore finds out about a directory, without waiting: it starts at the nearest one above that is known, and stays on its mount, which is
// this machine's own. o.views.mu is held.
func (o *Observer) explore(dir string) (local bool, is seen) {
	if local, known := o.plain[dir]; known {
		return local, plain
	}
	above := path.Dir(dir)
	for ; above != "/"; above = path.Dir(above) {
		if _, known := o.plain[above]; known {
			break
		}
	}
	if o.rootFD < 0 || !o.plain[above] {
		return false, unknown
	}
	from, err := unix.Openat2(o.rootFD, "."+above, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return false, unknown
	}
	defer unix.Close(from)
	fd, err := unix.Openat2(from, strings.TrimPrefix(dir[len(above):], "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	switch {
	case err == nil:
		unix.Close(fd)
		o.note(dir, true)
		return true, plain
	case errors.Is(err, unix.ENOENT):
		return true, absent
	}
	return false, unknown
}

// whatIs looks at a name in a directory that is plain. o.views.mu is held.
func (o *Observer) whatIs(name string) seen {
	if o.rootFD < 0 {
		return unknown
	}
	var stat unix.Stat_t
	err := unix.Fstatat(o.rootFD, "."+name, &stat, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	switch {
	case errors.Is(err, unix.ENOENT):
		return absent
	case err == nil && stat.Mode&unix.S_IFMT != unix.S_IFLNK:
		return plain
	}
	return unknown
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

// mostPlain bounds the directories that are remembered, of each kind.
const mostPlain = 1024

// unlinked is a clean path without the symlinks in its directory, where these are known: /bin/sh is one that programs execute all the time.
func (o *Observer) unlinked(name string) string {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if real, known := o.links[path.Dir(name)]; known {
		return path.Join(real, path.Base(name))
	}
	return name
}

// remember notes of the directory of a place, as it was written, that no symlink leads to it, or where those lead.
func (o *Observer) remember(root int, there *place) {
	written := path.Clean(there.name)
	if there.path == written {
		o.rememberPlain(there)
		return
	}
	dir := path.Dir(written)
	if strings.Contains(there.name+"/", "/../") {
		return // "link/.." is where the link leads
	}
	fd, err := lookUp(root, dir, true)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	real, err := os.Readlink(link2fd(fd))
	if err != nil || real == dir {
		return // the last name alone is a symlink
	}
	local := isLocal(fd)
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if len(o.links) >= mostPlain {
		clear(o.links)
	}
	o.links[dir] = real
	o.note(real, local)
}

func (o *Observer) rememberPlain(there *place) {
	fd := there.fd
	if fd < 0 {
		fd = there.parent
	}
	local := isLocal(fd)
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	o.note(there.parentPath, local)
}

// note remembers a directory without symlinks. o.views.mu is held.
func (o *Observer) note(dir string, local bool) {
	if len(o.plain) >= mostPlain {
		top := o.plain["/"]
		clear(o.plain)
		o.plain["/"] = top
	}
	o.plain[dir] = local
}

// hold keeps the root of the session's mounts, which a caller has told.
func (o *Observer) hold(root int) {
	o.views.mu.Lock()
	defer o.views.mu.Unlock()
	if o.rootFD < 0 && !o.closed {
		if fd, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			o.rootFD, o.plain["/"] = fd, isLocal(fd)
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
	mu     sync.Mutex        // guards the fields below
	plain  map[string]bool   // directories without symlinks, and whether their file systems are local
	links  map[string]string // directories with symlinks, and what they are without
	rootFD int
	closed bool
}
