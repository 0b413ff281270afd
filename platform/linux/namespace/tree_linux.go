package namespace

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// grant is a writable path of a Tree.
type grant struct {
	path string
	// place is what the path leads to in the read-only tree.
	place int
	// clone is a copy of the mounts at the path and below. They are as writable
	// as they were outside.
	clone int
}

// mount makes the whole tree read-only, puts copies of the writable paths over
// it, and proves both. It works by descriptors and follows no symlink.
func (t *Tree) mount() error {
	grants, err := t.clone()
	defer func() {
		for _, g := range grants {
			unix.Close(g.place)
			unix.Close(g.clone)
		}
	}()
	if err != nil {
		return err
	}
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attributes); err != nil {
		return fmt.Errorf("make the file tree read-only: %w", err)
	}
	for _, g := range grants {
		err := unix.MoveMount(g.clone, "", g.place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		if err != nil {
			return fmt.Errorf("make %s writable: mount: %w", g.path, err)
		}
	}
	if err := proveReadOnly("/"); err != nil {
		return fmt.Errorf("make the file tree read-only: %w", err)
	}
	for _, g := range grants {
		if err := g.prove(); err != nil {
			return fmt.Errorf("make %s writable: %w", g.path, err)
		}
	}
	return nil
}

// clone copies the mounts at the writable paths. A path that cannot be reached
// is left out: Landlock then does not grant it either. So are devices, FIFOs
// and sockets, which can be written on a read-only mount. The caller closes the
// descriptors, also after an error.
func (t *Tree) clone() (grants []grant, err error) {
	for _, path := range t.Writable {
		place, err := openPlain(path)
		if err != nil {
			if isUnreachable(err) {
				continue
			}
			return grants, fmt.Errorf("make %s writable: %w", path, err)
		}
		var stat unix.Stat_t
		if err := unix.Fstat(place, &stat); err != nil {
			unix.Close(place)
			return grants, fmt.Errorf("make %s writable: %w", path, err)
		}
		if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
			unix.Close(place)
			continue
		}
		clone, err := unix.OpenTree(place, "",
			unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
		if err != nil {
			unix.Close(place)
			return grants, fmt.Errorf("make %s writable: copy mounts: %w", path, err)
		}
		grants = append(grants, grant{path: path, place: place, clone: clone})
	}
	return grants, nil
}

// isUnreachable reports whether an error means that a path does not exist for
// this process, or not without a symlink.
func isUnreachable(err error) bool {
	return isAbsent(err) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENAMETOOLONG)
}

var errNotThere = errors.New("the path does not lead to the mount that was made for it")

// prove returns an error unless the path leads to the copy. A path that a
// program outside has removed meanwhile is no error. A try to write would ask
// the file system, which may be another machine.
func (g grant) prove() error {
	want, err := mountID(g.clone, "")
	if err != nil {
		return err
	}
	got, err := mountID(unix.AT_FDCWD, g.path)
	if isUnreachable(err) || err == nil && got == want {
		return nil
	}
	return errors.Join(err, errNotThere)
}

// mountID returns the number of the mount that a path leads to, or of a
// descriptor's if the path is empty (Linux 5.8).
func mountID(dir int, path string) (uint64, error) {
	var stat unix.Statx_t
	const flags = unix.AT_EMPTY_PATH | unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	err := unix.Statx(dir, path, flags, unix.STATX_MNT_ID, &stat)
	if err != nil {
		return 0, err
	}
	if stat.Mask&unix.STATX_MNT_ID == 0 {
		return 0, errors.New("the kernel does not number mounts")
	}
	return stat.Mnt_id, nil
}
