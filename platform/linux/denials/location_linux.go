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

// location is what a path refers to for a caller. Its descriptors hold the
// files, whatever happens to the names.
type location struct {
	// name is the path as the caller wrote it, made absolute; empty if that is
	// not known.
	name string
	// path is the real path, from the root of the caller's mounts.
	path string
	// fd is an O_PATH descriptor of the file; -1 if nothing exists.
	fd   int
	mode uint32 // of fd: file type (S_IFMT) and permissions
	// parent is a descriptor of the directory that holds the name, or would
	// hold it; -1 until openParent.
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

// locate resolves a path as the kernel will for the caller a moment later. dir
// is a descriptor number of the caller's, or AT_FDCWD. The error is the
// kernel's. ELOOP also stands for a magic link (/proc/PID/fd/N): it would
// resolve for the sidecar instead of the caller, and its target was opened
// before.
func locate(call *notify.Call, root, dir int, name string, follow bool) (*location, error) {
	name, err := absolute(call, root, dir, name)
	if err != nil {
		return nil, err
	}
	loc, err := resolve(root, name, follow)
	if err == nil {
		loc.name = name
	}
	return loc, err
}

// absolute returns a path from the caller's root. It is not cleaned: "link/.."
// is the parent of the link's target.
func absolute(call *notify.Call, root, dir int, name string) (string, error) {
	if strings.HasPrefix(name, "/") {
		return name, nil
	}
	from, err := directory(call.TID, root, dir)
	return from + "/" + name, err
}

// rootOf opens the root directory of a thread. The caller closes it.
func rootOf(tid int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/%d/root", tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// directory returns where the caller's relative paths start, as a path from the
// caller's root.
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
		return "", unix.ENOENT // the directory is outside the caller's root
	}
	if !strings.HasPrefix(from, "/") && from != "" || strings.HasSuffix(from, removed) {
		return "", unix.ENOENT
	}
	return from, nil
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// maxLinks bounds the dangling symlinks on the way; the kernel's own limit is
// 40.
const maxLinks = 8

// resolve follows a path from a root. If nothing exists there, it finds the
// parent directory instead. If a symlink dangles, it finds the directory that
// the symlink leads into: open(2) would create the file there.
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

// isRemoved reports whether the file has lost its name, or may have: the kernel then
// adds to its path.
func (p *location) isRemoved() bool { return strings.HasSuffix(p.path, removed) }

const removed = " (deleted)"

// isNamed reports whether the caller's path ends in the name that was found. The
// kernel makes and removes nothing by "." or "..", and by a symlink and a slash only
// what that leads to.
func (p *location) isNamed() bool {
	switch path.Base(p.name[strings.LastIndexByte(p.name, '/')+1:]) {
	case "..":
		return false
	case ".": // or nothing behind the last slash
		return strings.HasSuffix(p.name, "/") && path.Clean(p.name) == p.path
	}
	return true
}

// newMissing returns the location of a name that does not exist. It takes
// ownership of parent.
func newMissing(parent int, base string) (*location, error) {
	dir, err := os.Readlink(fdPath(parent))
	if err != nil {
		unix.Close(parent)
		return nil, err
	}
	return &location{path: path.Join(dir, base), fd: -1, parent: parent, parentPath: dir}, nil
}

// newLocation returns the location of an open file. It takes ownership of fd.
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

// openParent opens the directory that holds the location.
func (p *location) openParent(root int) error {
	if p.parent >= 0 {
		return nil
	}
	var err error
	p.parent, err = openPath(root, p.parentPath, true)
	return err
}

// split cuts a path before its last name and leaves the rest unchanged.
func split(name string) (dir, base string) {
	name = strings.TrimRight(name, "/")
	at := strings.LastIndexByte(name, '/')
	if at < 0 {
		return "", name
	}
	return name[:at+1], name[at+1:]
}

// openPath opens a path below a root with O_PATH, which has no side effects.
func openPath(root int, name string, follow bool) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if !follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	for range maxTries {
		fd, err := unix.Openat2(root, name, &how)
		// EAGAIN: something was renamed meanwhile, so the kernel cannot tell
		// whether ".." stayed below the root.
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
