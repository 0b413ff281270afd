package namespace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mount mounts everything, and proves from the paths that it holds. It follows
// no symlink and goes by descriptors: what is mounted on is what was looked at,
// whatever somebody does to the names meanwhile.
func (m ProtectedMounts) mount() (MountResult, error) {
	var result MountResult
	for _, dir := range m.Pinned {
		if err := mountOnItself(dir, 0); err != nil && !isAbsent(err) {
			return result, fmt.Errorf("pin %s: %w", dir, err)
		}
	}
	var mounted []string
	for _, path := range m.Protected {
		err := mountOnItself(path, unix.MOUNT_ATTR_RDONLY)
		switch {
		case err == nil:
			mounted = append(mounted, path)
		case errors.Is(err, unix.ELOOP):
			result.Symlinks = append(result.Symlinks, path)
		case errors.Is(err, unix.ENOTDIR): // below a file
		case errors.Is(err, unix.ENOENT) && !within(mounted, path):
			result.Missing = append(result.Missing, path)
		case errors.Is(err, unix.ENOENT):
		default:
			return result, fmt.Errorf("protect %s: %w", path, err)
		}
	}
	for _, path := range mounted {
		if err := proveReadOnly(path); err != nil {
			return result, fmt.Errorf("protect %s: %w", path, err)
		}
	}
	for _, dir := range m.Pinned {
		if err := provePinned(dir); err != nil && !isAbsent(err) {
			return result, fmt.Errorf("pin %s: %w", dir, err)
		}
	}
	return result, nil
}

// isAbsent reports whether an error says that there is no such directory.
func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// within reports whether a path lies below one of the others, which are sorted
// before it.
func within(dirs []string, path string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// openPlain opens a path that crosses no symlink and is none, without any right
// to it. The error is ELOOP where it is.
func openPlain(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	for errors.Is(err, unix.EAGAIN) { // a rename elsewhere got in the way (openat2(2))
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
	}
	return fd, err
}

// mountOnItself puts a copy of the mounts at a path, and of those below, on the
// path itself, with attributes.
func mountOnItself(path string, attributes uint64) error {
	fd, err := openPlain(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("copy mounts: %w", err)
	}
	defer unix.Close(tree)
	if attributes != 0 {
		err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
		if err != nil {
			return fmt.Errorf("set attributes of mount: %w", err)
		}
	}
	if err := unix.MoveMount(tree, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

var errWritable = errors.New("it can be written although it was mounted read-only")

// canaryName is one that no file has.
const canaryName = ".sandbox-sidecar-canary"

// proveReadOnly tries to write: by opening a file, by removing from a directory
// what is not in it. Both fail for the mount's sake before the kernel looks at
// anything else.
func proveReadOnly(path string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return err
	}
	var err error
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.Unlink(filepath.Join(path, canaryName))
	} else {
		err = unix.Lremovexattr(path, "user.sandbox-sidecar.canary")
	}
	switch {
	case errors.Is(err, unix.EROFS):
		return nil
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODATA):
		return errWritable
	}
	return fmt.Errorf("try to write: expected a refusal for the mount's sake: %w", err)
}

var errNotPinned = errors.New("it can be renamed although it was mounted on")

// provePinned asks the kernel whether a path is a mount (STATX_ATTR_MOUNT_ROOT,
// Linux 5.8). Trying to rename would do it where it can be done.
func provePinned(dir string) error {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE,
		&stat); err != nil {
		return err
	}
	if stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return errNotPinned
	}
	return nil
}
