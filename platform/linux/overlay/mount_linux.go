package overlay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay/message"
)

// mounted is an overlay in the holder's mount namespace.
type mounted struct {
	// place is the directory that it is mounted on, below the mount.
	place int
	// mount is the root of the overlay.
	mount int
}

func (m mounted) close() {
	unix.Close(m.mount)
	unix.Close(m.place)
}

// openBelow opens a directory below another one with O_PATH. No component may be
// a symlink.
func openBelow(dir int, name string) (int, error) {
	for {
		fd, err := unix.Openat2(dir, name, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
		if !errors.Is(err, unix.EAGAIN) { // a rename elsewhere interfered (openat2(2))
			return fd, err
		}
	}
}

// makeDirs makes the directories of a cache in the directory of the overlays.
func makeDirs(dir *os.File, name, path string) error {
	if err := mkdir(int(dir.Fd()), name); err != nil {
		return fmt.Errorf("make %s: %w", filepath.Join(dir.Name(), name), err)
	}
	own, err := openBelow(int(dir.Fd()), name)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	fd, err := unix.Openat(own, pathName, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), pathName)
	_, err = file.WriteString(path)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	for _, sub := range cacheDirs {
		if err := mkdir(own, sub); err != nil {
			return fmt.Errorf("make %s: %w", filepath.Join(dir.Name(), name, sub), err)
		}
	}
	return nil
}

func mkdir(dir int, name string) error {
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// mountOverlay mounts the overlay of a cache on its directory in this mount
// namespace. The layers are named by descriptors, so that no character in a path
// has a meaning and no symlink is followed.
func mountOverlay(dir *os.File, name string, c Cache, user bool) (m mounted, err error) {
	if err := makeDirs(dir, name, c.Path); err != nil {
		return m, err
	}
	own, err := openBelow(int(dir.Fd()), name)
	if err != nil {
		return m, err
	}
	defer unix.Close(own)
	layers := map[string]int{}
	defer func() {
		for _, fd := range layers {
			unix.Close(fd)
		}
	}()
	for option, sub := range map[string]string{"upperdir": upperName, "workdir": workName, "lowerdir": emptyName} {
		if layers[option], err = openBelow(own, sub); err != nil {
			delete(layers, option)
			return m, err
		}
	}
	if !c.Empty {
		lower, err := openBelow(unix.AT_FDCWD, c.Path)
		if err != nil {
			return m, fmt.Errorf("open %s: %w", c.Path, err)
		}
		unix.Close(layers["lowerdir"])
		layers["lowerdir"] = lower
	}
	place, err := openBelow(own, mountName)
	if err != nil {
		return m, err
	}
	mount, err := newOverlay(layers, user)
	if err != nil {
		unix.Close(place)
		return m, err
	}
	m = mounted{place: place, mount: mount}
	const byDescriptor = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(mount, "", place, "", byDescriptor); err != nil {
		m.close()
		return mounted{}, fmt.Errorf("attach overlay: %w", err)
	}
	return m, nil
}

// mountError is the error of the system call that makes an overlay.
type mountError struct{ cause error }

func (e *mountError) Error() string { return fmt.Sprintf("make overlay: %v", e.cause) }

func (e *mountError) Unwrap() error { return e.cause }

// newOverlay makes an overlay that is not mounted on a path yet. user says that
// this process has its rights from a user namespace, where the overlay keeps its
// notes in attributes of the user (Linux 5.11).
func newOverlay(layers map[string]int, user bool) (int, error) {
	context, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, &mountError{err}
	}
	defer unix.Close(context)
	for _, option := range []string{"lowerdir", "upperdir", "workdir"} {
		if err := unix.FsconfigSetString(context, option, message.FDPath(layers[option])); err != nil {
			return -1, &mountError{err}
		}
	}
	if user {
		if err := unix.FsconfigSetFlag(context, "userxattr"); err != nil {
			return -1, &mountError{err}
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, &mountError{err}
	}
	// The kernel makes the directory "work" without any permission
	// (ovl_workdir_create). An ordinary user could not remove ~/.cache.
	if err := unix.Fchmodat(layers["workdir"], "work", 0o700, 0); err != nil {
		return -1, fmt.Errorf("open the work directory to its owner: %w", err)
	}
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	var stat unix.Statfs_t
	if err := unix.Fstatfs(layers["lowerdir"], &stat); err != nil {
		return -1, err
	}
	if stat.Flags&unix.ST_NOEXEC != 0 {
		attributes |= unix.MOUNT_ATTR_NOEXEC
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, &mountError{err}
	}
	return fd, nil
}

// refresh makes the overlay forget names that it has looked up and that nobody
// uses. Otherwise a file that a program outside has made meanwhile could stay
// invisible.
func (m mounted) refresh() error {
	context, err := unix.Fspick(m.mount, "", unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("refresh overlay: %w", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigReconfigure(context); err != nil {
		return fmt.Errorf("refresh overlay: %w", err)
	}
	return nil
}

// clone returns a copy of the mount that can be mounted in another mount
// namespace.
func (m mounted) clone() (int, error) {
	return unix.OpenTree(m.mount, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
}

// cannot reports whether an error means that this machine, or this file system,
// cannot have overlays. Any other error may be one of the moment.
func cannot(err error) bool {
	var failed *mountError
	if !errors.As(err, &failed) {
		return false
	}
	for _, errno := range []unix.Errno{
		unix.EINVAL, unix.EPERM, unix.ENODEV, unix.ENOSYS, unix.EOPNOTSUPP,
	} {
		if errors.Is(failed.cause, errno) {
			return true
		}
	}
	return false
}

var errNotWhole = errors.New("what is removed in an overlay comes back")

// probe makes an overlay and removes a directory of the real cache in it, which
// needs everything that the file system must have: whiteouts and attributes.
func probe(dir *os.File, user bool) (err error) {
	lower := filepath.Join(dir.Name(), probeName, emptyName)
	c := Cache{Path: lower}
	if err := makeDirs(dir, probeName, ""); err != nil {
		return err
	}
	at, err := openBelow(int(dir.Fd()), filepath.Join(probeName, emptyName))
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := mkdir(at, "d"); err != nil {
		return err
	}
	if err := unix.Mkdirat(at, "d/below", 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	m, err := mountOverlay(dir, probeName, c, user)
	if err != nil {
		return err
	}
	defer m.close()
	defer func() { err = errors.Join(err, unmount(m)) }()
	top, err := unix.Openat(m.mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(top)
	// A probe of before has left the first directory replaced.
	if err := unix.Unlinkat(top, "d/below", unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &mountError{err}
	}
	if err := unix.Unlinkat(top, "d", unix.AT_REMOVEDIR); err != nil {
		return &mountError{err}
	}
	if err := unix.Mkdirat(top, "d", 0o700); err != nil {
		return &mountError{err}
	}
	var stat unix.Stat_t
	if err := unix.Fstatat(top, "d/below", &stat, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return &mountError{errors.Join(errNotWhole, unix.EOPNOTSUPP)}
	}
	return nil
}

// unmount takes an overlay away from its place.
func unmount(m mounted) error {
	// The path of the mount leads to its root.
	return unix.Unmount(message.FDPath(m.mount), unix.MNT_DETACH)
}
