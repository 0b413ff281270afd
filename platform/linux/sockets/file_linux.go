package sockets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// socketFile is a socket in the file system, held by an O_PATH descriptor.
// Whatever happens to its names, the descriptor refers to this inode, and the
// kernel reuses the inode's number for no other.
type socketFile struct {
	fd   int
	stat unix.Stat_t
}

// locate resolves a path from the caller's root and working directory, as
// connect(2) would. If the path changes meanwhile, the result is one of the
// files that it has named; the decision is about that file.
func locate(tid int, path string) (*socketFile, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	whole, err := path, error(nil)
	if !strings.HasPrefix(path, "/") {
		whole, err = fromRoot(tid, root, path)
	}
	if err == nil && fsguard.Answers(whole) != nil {
		return nil, unix.ETIMEDOUT
	}
	if !strings.HasPrefix(path, "/") {
		if fd, err := beneath(tid, path); err == nil || !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EXDEV) {
			return newSocketFile(fd, err)
		}
		if path, err = fromRoot(tid, root, path); err != nil {
			return nil, err
		}
	}
	return newSocketFile(openat2(root, path, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS))
}

// beneath resolves a path below the caller's working directory that contains no
// symlink and no "..". Other paths are resolved from the caller's root, because
// openat2(2) can confine a lookup only to where it starts.
func beneath(tid int, path string) (int, error) {
	cwd, err := unix.Open(fmt.Sprintf("/proc/%d/cwd", tid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(cwd)
	return openat2(cwd, path, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// fromRoot turns a path relative to the caller's working directory into one
// relative to its root.
func fromRoot(tid, root int, path string) (string, error) {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", tid))
	if err != nil {
		return "", err
	}
	top, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(root))
	if err != nil {
		return "", err
	}
	below, err := filepath.Rel(top, cwd)
	if err != nil || !filepath.IsLocal(below) {
		return "", unix.ENOENT // the directory is outside the caller's root, or was removed
	}
	return "/" + below + "/" + path, nil // not cleaned: "link/.." is the parent of the link's target
}

// openat2 opens a file with O_PATH, which has no side effects. Magic links are
// rejected: they would resolve for the sidecar instead of the caller.
func openat2(dir int, path string, resolve uint64) (int, error) {
	for range maxTries {
		fd, err := unix.Openat2(dir, path, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: resolve | unix.RESOLVE_NO_MAGICLINKS,
		})
		// EAGAIN: something was renamed meanwhile, so the kernel cannot tell
		// whether ".." stayed below the root.
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
	return -1, unix.EACCES
}

func newSocketFile(fd int, err error) (*socketFile, error) {
	if err != nil {
		return nil, err
	}
	p := &socketFile{fd: fd}
	if err := unix.Fstat(fd, &p.stat); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *socketFile) close() { unix.Close(p.fd) }

func (p *socketFile) isSocket() bool { return p.stat.Mode&unix.S_IFMT == unix.S_IFSOCK }

// same reports whether both are the same inode.
func (p *socketFile) same(other *socketFile) bool {
	return p.stat.Dev == other.stat.Dev && p.stat.Ino == other.stat.Ino
}

// path returns where the file is now, as this process sees it. For a removed
// name the kernel appends " (deleted)".
func (p *socketFile) path() (string, error) { return os.Readlink(p.link()) }

// link returns a path that resolves to this very inode.
func (p *socketFile) link() string { return "/proc/self/fd/" + strconv.Itoa(p.fd) }

// kernelInode returns the inode number that sock_diag uses. stat(2) may return
// another: overlayfs passes on that of the layer below.
func (p *socketFile) kernelInode() (uint32, error) {
	text, err := p.fdinfo("ino:")
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(text, 10, 64)
	return uint32(number), err // truncated as sock_diag does
}

// onDevice reports whether a device number of sock_diag means this file's file
// system. stat(2) may return another number: btrfs has one for each subvolume.
// mountinfo has the kernel's own.
func (p *socketFile) onDevice(tid int, device uint32) bool {
	major, minor := device>>20, device&(1<<20-1) // MKDEV of linux/kdev_t.h
	if unix.Major(p.stat.Dev) == major && unix.Minor(p.stat.Dev) == minor {
		return true
	}
	mount, err := p.fdinfo("mnt_id:")
	if err != nil {
		return false
	}
	want := fmt.Sprintf("%d:%d", major, minor)
	for _, process := range []string{strconv.Itoa(tid), "self"} { // either may be in another mount namespace
		table, err := os.ReadFile("/proc/" + process + "/mountinfo")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == mount {
				return fields[2] == want
			}
		}
	}
	return false
}

func (p *socketFile) fdinfo(field string) (string, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(p.fd))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(info)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("read information about a descriptor: no %s", field)
}
