package denials

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// place is what a path leads a caller to. The descriptors hold it: whatever
// becomes of the names, it stays this one.
type location struct {
	// name is the path as it was written, made absolute; empty where that is
	// not known.
	name string
	// path is the real one, from the root of the caller's mounts.
	path string
	// fd is what is there, without any right to it; -1 where nothing is.
	fd   int
	mode uint32 // of fd: S_IFMT and permissions
	// parent is the directory that holds the name, or would.
	parent     int
	parentPath string
}

func (p *location) exists() bool { return p.fd >= 0 }

func (p *location) kind() uint32 { return p.mode & unix.S_IFMT }

func (p *location) close() {
	for _, fd := range []int{p.fd, p.parent} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// locate finds what a path leads the caller of a call to, from its root, as the
// kernel will a moment later. dir is a descriptor of the caller's, or AT_FDCWD.
// The error is that of the kernel; ELOOP also stands for a magic link
// (/proc/PID/fd/N), which in a path of the caller's would lead from us, and for
// which what it leads to was opened before.
func locate(call *notify.Call, root, dir int, name string, follow bool) (*location, error) {
	if !strings.HasPrefix(name, "/") {
		from, err := directory(call.TID, root, dir)
		if err != nil {
			return nil, err
		}
		name = from + "/" + name // not cleaned: "link/.." is where the link leads
	}
	loc, err := resolve(root, name, follow)
	if err == nil {
		loc.name = name
	}
	return loc, err
}

// rootOf opens the root of a thread, which is to be closed.
func rootOf(tid int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/%d/root", tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// directory is the path, from the caller's root, of where relative paths start.
func directory(tid, root, dir int) (string, error) {
	link := fmt.Sprintf("/proc/%d/cwd", tid)
	if dir != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", tid, dir)
	}
	from, err := os.Readlink(link)
	if err != nil {
		return "", err
	}
	top, err := os.Readlink(fdPath(root))
	if err != nil {
		return "", err
	}
	switch {
	case top == "/":
	case from == top || strings.HasPrefix(from, top+"/"):
		from = strings.TrimPrefix(from, top)
	default:
		return "", unix.ENOENT // it has left its root
	}
	if !strings.HasPrefix(from, "/") && from != "" || strings.HasSuffix(from, " (deleted)") {
		return "", unix.ENOENT
	}
	return from, nil
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// mostLinks bounds the symlinks that lead to nothing yet; the kernel's own
// bound is 40.
const maxLinks = 8

// walk follows a path from a root. Where nothing is there its directory is
// found instead, and where a symlink leads to nothing, the directory that it
// leads into: there a file would be made.
func resolve(root int, name string, follow bool) (*location, error) {
	if err := fsguard.Answers(name); err != nil {
		return nil, err
	}
	for range maxLinks {
		fd, err := openPath(root, name, follow)
		if err == nil {
			return newLocation(fd)
		}
		if !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
		dir, base := split(name)
		if base == "" || base == "." || base == ".." {
			return nil, unix.ENOENT
		}
		parent, err := openPath(root, dir, true)
		if err != nil {
			return nil, err
		}
		target, err := readlinkat(parent, base)
		if err != nil || !follow {
			return newMissing(parent, base)
		}
		unix.Close(parent)
		if !strings.HasPrefix(target, "/") {
			target = dir + "/" + target
		}
		name = target
	}
	return nil, unix.ELOOP
}

// missing is the place of a name that is not there. It takes the directory
// over.
func newMissing(parent int, base string) (*location, error) {
	dir, err := os.Readlink(fdPath(parent))
	if err != nil {
		unix.Close(parent)
		return nil, err
	}
	return &location{path: path.Join(dir, base), fd: -1, parent: parent, parentPath: dir}, nil
}

// hold is the place of what was found. It takes the descriptor over.
func newLocation(fd int) (*location, error) {
	p := &location{fd: fd, parent: -1}
	var stat unix.Stat_t
	err := unix.Fstat(fd, &stat)
	if err == nil {
		p.mode = stat.Mode
		p.path, err = os.Readlink(fdPath(fd))
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.parentPath = path.Dir(p.path)
	return p, nil
}

// holdParent opens the directory that a place lies in.
func (p *location) openParent(root int) error {
	if p.parent >= 0 {
		return nil
	}
	var err error
	p.parent, err = openPath(root, p.parentPath, true)
	return err
}

// split cuts a path before its last name, without touching what stands before.
func split(name string) (dir, base string) {
	name = strings.TrimRight(name, "/")
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return "", name
	}
	return name[:at+1], name[at+1:]
}

// lookUp opens a path beneath a root without touching what is there.
func openPath(root int, name string, follow bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	for range maxTries {
		fd, err := unix.Openat2(root, name, &how)
		// EAGAIN: a rename elsewhere, so that the kernel cannot tell whether
		// ".." stayed inside.
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return -1, unix.EAGAIN
}

const maxTries = 8

func readlinkat(dir int, name string) (string, error) {
	buffer := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}
