package namespace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mount makes all mounts and proves by the paths that they hold. It works by
// descriptors and follows no symlink: it mounts on the file that it has opened,
// even if the path is changed meanwhile.
func (m ProtectedMounts) mount() (MountResult, error) {
	var result MountResult
	for _, dir := range m.Pinned {
		if err := mountOnItself(dir, 0); err != nil && !isAbsent(err) {
			return result, fmt.Errorf("pin %s: %w", dir, err)
		}
	}
	for _, link := range m.Links {
		if err := pinLink(link); err != nil && !isAbsent(err) {
			return result, fmt.Errorf("protect %s: %w", link, err)
		}
	}
	var mounted []string
	for _, path := range m.Protected {
		err := m.protect(path)
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

// isAbsent reports whether an error means that a path is not a directory that
// can be reached without a symlink.
func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// within reports whether a path is below one of the directories.
func within(dirs []string, path string) bool {
	for _, dir := range dirs {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// openPlain opens a path with O_PATH. The error is ELOOP if any component is a
// symlink.
func openPlain(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	for errors.Is(err, unix.EAGAIN) { // a rename elsewhere interfered (openat2(2))
		fd, err = unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
	}
	return fd, err
}

// mountOnItself mounts a copy of the mount at a path, and of all mounts below,
// on the path itself. All of them get the attributes (MOUNT_ATTR_*).
func mountOnItself(path string, attributes uint64) error {
	fd, err := openPlain(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mountOn(fd, attributes)
}

// mountOn is mountOnItself for an open file.
func mountOn(fd int, attributes uint64) error {
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

// canaryName is a name that no file has.
const canaryName = ".sandbox-sidecar-canary"

// proveReadOnly tries to remove an extended attribute from a file, or an entry
// from a directory. Neither exists, so that nothing can be lost. On a read-only
// mount both fail with EROFS before the kernel checks anything else.
func proveReadOnly(path string) error {
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		return err
	}
	err := error(unix.EACCES)
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.Unlink(filepath.Join(path, canaryName))
	}
	if errors.Is(err, unix.EACCES) { // it is a file, or a directory that this user cannot search
		err = unix.Lremovexattr(path, "user.sandbox-sidecar.canary")
	}
	switch {
	case errors.Is(err, unix.EROFS):
		return nil
	case err == nil, errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODATA):
		return errWritable
	}
	return fmt.Errorf("try to write: expected a read-only file system: %w", err)
}

var errNotPinned = errors.New("it can be renamed although it was mounted on")

// provePinned returns an error unless a path is the root of a mount
// (STATX_ATTR_MOUNT_ROOT, Linux 5.8); ELOOP if it is a symlink. A test by
// renaming would rename the directory if it is not pinned.
func provePinned(dir string) error {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE,
		&stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP // as openPlain
	}
	if stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return errNotPinned
	}
	return nil
}
