package namespace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// closed are the attributes of the mounts over hidden paths. Nothing can be
// written there, and no device can be opened, by root neither.
const closed = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC

// mount hides each path that exists, and proves it. It works by descriptors and
// follows no symlink. A path that cannot be reached has nothing to hide.
func (h *Hidden) mount() error {
	empty := -1 // an empty directory that is mounted already
	defer func() {
		if empty >= 0 {
			unix.Close(empty)
		}
	}()
	for _, hidden := range h.Paths {
		if err := hidden.mount(&empty); err != nil {
			return fmt.Errorf("hide %s: %w", hidden.Path, err)
		}
	}
	return nil
}

func (h HiddenPath) mount(empty *int) error {
	place, err := openPlain(h.Path)
	if err != nil {
		if isUnreachable(err) {
			return nil
		}
		return err
	}
	defer unix.Close(place)
	var stat unix.Stat_t
	if err := unix.Fstat(place, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return hideFile(h.Path, place)
	}
	back, err := cloneAll(h.Back)
	defer closeClones(back)
	if err != nil {
		return err
	}
	if len(back) == 0 && *empty >= 0 {
		return hideByCopy(*empty, h.Path, place)
	}
	fd, err := hideDir(h.Path, place, back)
	if err != nil {
		return err
	}
	if len(back) == 0 {
		*empty = fd
		return nil
	}
	return unix.Close(fd)
}

// hideFile mounts a device over a file, and lets nobody open devices there.
func hideFile(path string, place int) error {
	device, err := unix.OpenTree(unix.AT_FDCWD, "/dev/null", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("copy the mount of /dev/null: %w", err)
	}
	defer unix.Close(device)
	if err := unix.MountSetattr(device, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: closed}); err != nil {
		return fmt.Errorf("set attributes of mount: %w", err)
	}
	if err := moveMount(device, place); err != nil {
		return err
	}
	if err := proveMounted(device, path); err != nil {
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
		return errors.New("it can still be opened")
	}
	if !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("try to open it: %w", err)
	}
	return nil
}

// hideDir mounts a directory over another. It has nothing but the way to what
// is mounted back. The caller closes the descriptor of the mount.
func hideDir(path string, place int, back []clone) (int, error) {
	config, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("make an empty file system: %w", err)
	}
	defer unix.Close(config)
	err = errors.Join(unix.FsconfigSetString(config, "mode", "0700"), unix.FsconfigSetString(config, "size", "1m"))
	if err == nil {
		err = unix.FsconfigCreate(config)
	}
	fd := -1
	if err == nil {
		fd, err = unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, closed&^unix.MOUNT_ATTR_RDONLY)
	}
	if err != nil {
		return -1, fmt.Errorf("make an empty file system: %w", err)
	}
	if err := coverDir(fd, path, place, back); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func coverDir(fd int, path string, place int, back []clone) error {
	if err := moveMount(fd, place); err != nil {
		return err
	}
	if err := putBack(path, back); err != nil {
		return err
	}
	if err := closeDirs(fd, path, back); err != nil {
		return fmt.Errorf("close the directory: %w", err)
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: closed}); err != nil {
		return fmt.Errorf("set attributes of mount: %w", err)
	}
	return proveMounted(fd, path)
}

// closeDirs lets nobody list the directory at fd, and the directories in it that
// lead to what is mounted back. They can only be passed.
func closeDirs(fd int, path string, back []clone) error {
	if len(back) == 0 {
		return unix.Fchmodat(fd, ".", 0, 0)
	}
	const passable = 0o111
	for _, c := range back {
		for dir := filepath.Dir(c.path); dir != path; dir = filepath.Dir(dir) {
			if err := unix.Fchmodat(fd, strings.TrimPrefix(dir, path+"/"), passable, 0); err != nil {
				return err
			}
		}
	}
	return unix.Fchmodat(fd, ".", passable, 0)
}

// hideByCopy mounts a copy of an empty directory's mount over a directory.
func hideByCopy(empty int, path string, place int) error {
	tree, err := unix.OpenTree(empty, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("copy mount: %w", err)
	}
	defer unix.Close(tree)
	if err := moveMount(tree, place); err != nil {
		return err
	}
	return proveMounted(tree, path)
}
