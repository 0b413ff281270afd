package namespace

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// StreamNames are the names of the standard streams by their descriptors.
var StreamNames = [3]string{"standard input", "standard output", "standard error"}

// CheckStreams returns an error if a standard stream is a socket that the filter
// would not let the session make. The filter cannot refuse an inherited one.
// No other socket arrives.
func CheckStreams(offline, mediated bool) error {
	for fd, name := range StreamNames {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if errors.Is(err, unix.ENOTSOCK) || errors.Is(err, unix.EBADF) {
			continue // not a socket, or not open
		}
		kind := 0
		if err == nil {
			kind, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		}
		switch {
		case err != nil:
			return fmt.Errorf("inspect %s: %w", name, err)
		case offline && domain != unix.AF_UNIX:
			return fmt.Errorf("%s is a network socket, but allow_network is false: use a pipe, a file or a terminal",
				name)
		case mediated && domain == unix.AF_UNIX && kind == unix.SOCK_DGRAM:
			return fmt.Errorf("%s is a datagram socket, which can reach any other: use a pipe, a file or a terminal",
				name)
		}
	}
	return nil
}

// reopenStreams opens those standard streams again, inside, that would lead past
// the session's mounts: the caller has opened them in its own mounts. They are
// directories, below which everything could be reached, and protected files,
// which could be opened for writing by /proc.
func reopenStreams(protected []string) error {
	for fd, name := range StreamNames {
		var before, after unix.Stat_t
		if unix.Fstat(fd, &before) != nil {
			continue
		}
		path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil {
			return fmt.Errorf("inspect %s: %w", name, err)
		}
		isProtected := slices.ContainsFunc(protected, func(dir string) bool { return policy.Contains(dir, path) })
		switch kind := before.Mode & unix.S_IFMT; {
		case kind != unix.S_IFDIR && (kind != unix.S_IFREG || !isProtected):
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return fmt.Errorf("inspect %s: %w", name, err)
		}
		offset, err := unix.Seek(fd, 0, unix.SEEK_CUR)
		if err != nil {
			offset = 0
		}
		again, err := unix.Open(path, flags&(unix.O_ACCMODE|unix.O_APPEND|unix.O_PATH)|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			0)
		if err == nil {
			err = unix.Fstat(again, &after)
		}
		if err == nil && (after.Dev != before.Dev || after.Ino != before.Ino) {
			err = errors.New("the path leads to another file by now")
		}
		if err == nil && offset > 0 {
			_, err = unix.Seek(again, offset, unix.SEEK_SET)
		}
		if err == nil {
			err = unix.Dup3(again, fd, 0)
		}
		if err != nil {
			return fmt.Errorf("open %s, %s, inside: %w", name, path, err)
		}
		unix.Close(again)
	}
	return nil
}

// Harmless reports whether a device is one that every session may use: null, zero,
// full, random or urandom (Documentation/admin-guide/devices.txt).
func Harmless(device uint64) bool {
	const memory = 1
	return unix.Major(device) == memory && slices.Contains([]uint32{3, 5, 7, 8, 9}, unix.Minor(device))
}

// reopenDevices opens those of the session's descriptors again, inside, that lead
// to such a device by other mounts than its own: by /proc root could change its mode
// for the whole machine. All devices of one number are the same, so the caller may
// have another /dev. One whose path leads to no such device stays as it is.
func reopenDevices(fds []int) error {
	for _, fd := range fds {
		var before, after unix.Stat_t
		if unix.Fstat(fd, &before) != nil || before.Mode&unix.S_IFMT != unix.S_IFCHR || !Harmless(before.Rdev) {
			continue
		}
		path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil {
			return fmt.Errorf("inspect descriptor %d: %w", fd, err)
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return fmt.Errorf("inspect descriptor %d: %w", fd, err)
		}
		closes, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil {
			return fmt.Errorf("inspect descriptor %d: %w", fd, err)
		}
		kept := flags & (unix.O_ACCMODE | unix.O_APPEND | unix.O_NONBLOCK | unix.O_SYNC | unix.O_PATH)
		again, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: uint64(kept | unix.O_CLOEXEC), Resolve: unix.RESOLVE_NO_SYMLINKS, // O_NOFOLLOW would stay a flag
		})
		if err != nil {
			continue
		}
		if unix.Fstat(again, &after) == nil && after.Mode&unix.S_IFMT == unix.S_IFCHR && after.Rdev == before.Rdev {
			how := 0
			if closes&unix.FD_CLOEXEC != 0 {
				how = unix.O_CLOEXEC
			}
			if err := unix.Dup3(again, fd, how); err != nil {
				return fmt.Errorf("open descriptor %d, %s, inside: %w", fd, path, err)
			}
		}
		unix.Close(again)
	}
	return nil
}
