package namespace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// openLink is openPlain for a path whose last name may be a symlink, which is
// opened itself.
func openLink(path string) (int, error) {
	how := &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS,
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
		if !errors.Is(err, unix.EAGAIN) { // a rename elsewhere interfered (openat2(2))
			return fd, err
		}
	}
}

// pinLink mounts a symlink on itself, so that nothing replaces it, and proves it.
// It still leads where it did.
func pinLink(path string) error {
	fd, err := openLink(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := mountOn(fd, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, unix.STATX_TYPE,
		&stat); err != nil {
		return err
	}
	if stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return errNotPinned
	}
	return nil
}

// protect mounts a path on itself, read-only, and what is reopened below it as it
// was. What a program outside has removed meanwhile is not there, and cannot be
// made.
func (m ProtectedMounts) protect(path string) error {
	back, err := cloneAll(m.reopenedBelow(path))
	defer closeClones(back)
	if err != nil {
		return err
	}
	if err := mountOnItself(path, unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	for _, c := range back {
		place, err := openPlain(c.path)
		if isUnreachable(err) {
			continue
		}
		if err == nil {
			err = moveMount(c.clone, place)
			unix.Close(place)
		}
		if err != nil {
			return fmt.Errorf("reopen %s: %w", c.path, err)
		}
	}
	return nil
}

// reopenedBelow are the paths that are reopened below a protected one. With
// another between, that is mounted later, and finds them as they are now.
func (m ProtectedMounts) reopenedBelow(path string) []string {
	var list []string
	for _, open := range m.Reopened {
		if open != path && policy.Contains(path, open) {
			list = append(list, open)
		}
	}
	return list
}
