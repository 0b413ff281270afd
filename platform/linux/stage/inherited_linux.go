package stage

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
)

// unlikeOpened returns those of the inherited descriptors by which the session
// could do more than by what it can open itself. The calling thread must have
// its mounts, and be confined by Landlock, so that the kernel answers.
//
// Pipes have no path by which anybody could be refused. Whoever has left one
// open for this program has chosen that, as for the standard streams.
func unlikeOpened(inherited []handshake.Inherited) (closed []handshake.Closed) {
	for _, descriptor := range inherited {
		if what := judgeInherited(descriptor.At); what != "" {
			closed = append(closed, handshake.Closed{Number: descriptor.Number, What: what})
		}
	}
	return closed
}

// judgeInherited returns what a descriptor leads to if it must be closed, and
// nothing if the session may have it.
func judgeInherited(fd int) (what string) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return "unknown: " + err.Error()
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return "unknown: " + err.Error()
	}
	link, err := os.Readlink(linkOf(fd))
	switch {
	case err != nil:
		return "unknown: " + err.Error()
	case flags&unix.O_PATH != 0 || stat.Mode&unix.S_IFMT == unix.S_IFDIR:
		return link
	case isLikeStream(fd, flags, &stat):
		return ""
	}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFREG:
		if isPipe(fd) || opensAlike(fd, flags, link, &stat) {
			return ""
		}
	case unix.S_IFCHR:
		if namespace.Harmless(stat.Rdev) || isOwnTerminal(fd) {
			return ""
		}
	case unix.S_IFSOCK:
		return "a socket"
	}
	return link
}

// isLikeStream reports whether a descriptor gives nothing that a standard stream
// does not give, as by 3>&1.
func isLikeStream(fd, flags int, stat *unix.Stat_t) bool {
	if !isOneThing(fd, stat) {
		return false
	}
	for stream := range 3 {
		var its unix.Stat_t
		if unix.Fstat(stream, &its) != nil || its.Dev != stat.Dev || its.Ino != stat.Ino {
			continue
		}
		mode, err := unix.FcntlInt(uintptr(stream), unix.F_GETFL, 0)
		if err != nil || mode&unix.O_PATH != 0 {
			continue
		}
		mode &= unix.O_ACCMODE
		if same, err := sameMount(fd, stream); err == nil && same &&
			(mode == flags&unix.O_ACCMODE || mode == unix.O_RDWR) {
			return true
		}
	}
	return false
}

// isOneThing reports whether all descriptors with an inode lead to the same thing.
// The kernel has one inode for all events and timers, for the masters of all
// terminals, and for all that open /dev/tty. A device may make a thing of its own
// for whoever opens it.
func isOneThing(fd int, stat *unix.Stat_t) bool {
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFBLK:
		return true
	case unix.S_IFREG:
		var system unix.Statfs_t
		return unix.Fstatfs(fd, &system) == nil && system.Type != unix.ANON_INODE_FS_MAGIC
	case unix.S_IFCHR:
		_, terminal := unix.IoctlGetTermios(fd, unix.TCGETS)
		_, slave := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return terminal == nil && slave != nil && stat.Rdev != unix.Mkdev(5, 0)
	}
	return false
}

func linkOf(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// isPipe reports whether a descriptor is of a pipe without a name.
func isPipe(fd int) bool {
	var system unix.Statfs_t
	return unix.Fstatfs(fd, &system) == nil && system.Type == unix.PIPEFS_MAGIC
}

// isOwnTerminal reports whether a descriptor is of the session's controlling
// terminal. Another terminal would be read and typed into. A master controls one
// and is never meant.
func isOwnTerminal(fd int) bool {
	// The kernel answers ENOTTY for another terminal, but not for a master; only
	// masters have a number.
	_, foreign := unix.IoctlGetInt(fd, unix.TIOCGSID)
	_, slave := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	return foreign == nil && slave != nil
}

// opensAlike reports whether the session can open the same file by its path, in
// the same mode. A file that was opened past a read-only mount of the session is
// opened again inside: by /proc the session could get more than its descriptor
// gives.
func opensAlike(fd, flags int, path string, stat *unix.Stat_t) bool {
	if !strings.HasPrefix(path, "/") || isKernels(fd, path) {
		return false
	}
	place, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(place)
	var inside unix.Stat_t
	if unix.Fstat(place, &inside) != nil || inside.Dev != stat.Dev || inside.Ino != stat.Ino {
		return false
	}
	// This end of a FIFO is open already, so its other end notices nothing.
	mode := flags & (unix.O_ACCMODE | unix.O_APPEND)
	again, err := unix.Open(linkOf(place), mode|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(again)
	same, err := sameMount(fd, place)
	switch {
	case err != nil:
		return false
	case same:
		return true
	}
	return mode == unix.O_RDONLY && replace(fd, again, flags) == nil
}

// isKernels reports whether a file is the kernel's own view of something: what
// its descriptor may do was decided when it was opened, outside.
func isKernels(fd int, path string) bool {
	for _, dir := range []string{"/proc/", "/sys/", "/dev/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	var system unix.Statfs_t
	if unix.Fstatfs(fd, &system) != nil {
		return true
	}
	switch system.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.NSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.SELINUX_MAGIC,
		unix.EFIVARFS_MAGIC, unix.BINFMTFS_MAGIC, unix.PSTOREFS_MAGIC, unix.PID_FS_MAGIC, unix.DEVPTS_SUPER_MAGIC:
		return true
	}
	return false
}

// sameMount reports whether two descriptors of a file are of mounts that are
// equally writable.
func sameMount(first, second int) (bool, error) {
	var a, b unix.Statfs_t
	if err := unix.Fstatfs(first, &a); err != nil {
		return false, err
	}
	err := unix.Fstatfs(second, &b)
	return a.Flags == b.Flags, err
}

// replace puts another open file in the place of an inherited one, with its
// flags and at its offset.
func replace(fd, again, flags int) error {
	offset, err := unix.Seek(fd, 0, unix.SEEK_CUR)
	if err == nil && offset > 0 {
		if _, err := unix.Seek(again, offset, unix.SEEK_SET); err != nil {
			return err
		}
	}
	if _, err := unix.FcntlInt(uintptr(again), unix.F_SETFL, flags); err != nil {
		return err
	}
	return unix.Dup3(again, fd, unix.O_CLOEXEC)
}
