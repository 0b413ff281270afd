package denials

import (
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// walk follows a path as the kernel does for a caller, magic links of /proc
// included. openat2 cannot: /proc/self would be the sidecar.
type walk struct {
	call *notify.Call
	root int
	top  int    // root, if it is not the caller's own; 0 otherwise
	fd   int    // the directory so far; -1 before start
	name string // the last name, once the directory is known
	link int    // symlinks so far
}

func (w *walk) close() {
	for _, fd := range []int{w.fd, w.top} {
		if fd > 0 {
			unix.Close(fd)
		}
	}
}

// openat is openat(2). It begins again if the runtime's signals interrupt it, as
// on FUSE.
func openat(dir int, name string, flags int) (fd int, err error) {
	for range maxTries {
		if fd, err = unix.Openat(dir, name, flags, 0); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return fd, err
}

const onlyPath = unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW

// start opens the directory where the path begins.
func (w *walk) start(c creation) (err error) {
	link := "/proc/" + strconv.Itoa(w.call.TID)
	switch {
	case strings.HasPrefix(c.text, "/") && !c.inRoot:
		return w.restart()
	case c.dir == unix.AT_FDCWD:
		link += "/cwd"
	default:
		link += "/fd/" + strconv.Itoa(c.dir)
	}
	w.fd, err = openat(unix.AT_FDCWD, link, unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY)
	if err == nil && c.inRoot {
		w.top, err = unix.FcntlInt(uintptr(w.fd), unix.F_DUPFD_CLOEXEC, 0)
		w.root = w.top
	}
	return err
}

func (w *walk) restart() error {
	fd, err := unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		w.move(fd)
	}
	return err
}

func (w *walk) move(fd int) {
	if w.fd >= 0 {
		unix.Close(w.fd)
	}
	w.fd = fd
}

// follow is walk for a name that is created: what exists is no such name.
func (w *walk) follow(text string, last bool) error {
	err := w.walk(text, last)
	if err == nil && w.name == "" {
		return unix.ENOENT // nothing that could be created: "/", ".", "..", or an open file
	}
	return err
}

// walk walks to the directory of the last name, and through symlinks in its
// place if last is true. It may leave the last name empty: the path then leads
// to something that exists, and fd is that.
func (w *walk) walk(text string, last bool) error {
	rest := strings.Split(strings.TrimRight(text, "/"), "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			if top, err := sameFile(w.fd, w.root); err != nil {
				return err
			} else if top {
				continue
			}
		}
		switch {
		case name == "" || name == ".":
			continue
		case len(rest) == 0 && !last && name != "..":
			w.name = name
			return nil
		}
		fd, err := openat(w.fd, name, onlyPath)
		if errors.Is(err, unix.ENOENT) && len(rest) == 0 {
			w.name = name
			return nil
		}
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil {
			unix.Close(fd)
			return err
		}
		if stat.Mode&unix.S_IFMT != unix.S_IFLNK {
			w.move(fd)
			continue
		}
		target, err := w.target(fd, name)
		unix.Close(fd)
		if w.link++; err == nil && w.link > mostLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return err
		}
		if target == "" { // a magic link
			fd, err := openat(w.fd, name, unix.O_PATH|unix.O_CLOEXEC)
			if err != nil {
				return err
			}
			w.move(fd)
			continue
		}
		if strings.HasPrefix(target, "/") {
			if err := w.restart(); err != nil {
				return err
			}
		}
		rest = append(strings.Split(strings.TrimRight(target, "/"), "/"), rest...)
	}
	return nil
}

// mostLinks is the kernel's limit.
const mostLinks = 40

// target is where a symlink leads for the caller; "" if only the kernel can
// follow it.
func (w *walk) target(fd int, name string) (string, error) {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return "", err
	}
	if system.Type != unix.PROC_SUPER_MAGIC {
		return readlinkat(fd, "")
	}
	pid, _, err := w.call.Process()
	switch {
	case err != nil:
		return "", err
	case name == "self":
		return strconv.Itoa(pid), nil
	case name == "thread-self":
		return strconv.Itoa(pid) + "/task/" + strconv.Itoa(w.call.TID), nil
	case name == "mounts" || name == "net":
		return readlinkat(fd, "")
	}
	return "", nil
}
