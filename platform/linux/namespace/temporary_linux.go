package namespace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mount puts each directory in its place, with what the session uses from
// outside mounted back into it, and proves all of it. It works by descriptors
// and follows no symlink. Without one of the directories the session would write
// what it shares with programs outside, so any error is one of the session.
func (t *Temporary) mount() error {
	for _, dir := range t.Dirs {
		if err := dir.mount(); err != nil {
			return fmt.Errorf("replace %s: %w", dir.Path, err)
		}
	}
	return nil
}

func (t TemporaryDir) mount() error {
	// What is mounted back can be reached only before.
	back, err := cloneAll(t.Back)
	defer closeClones(back)
	if err != nil {
		return err
	}
	source, err := cloneAll([]string{t.Source})
	defer closeClones(source)
	switch {
	case err != nil:
		return err
	case len(source) == 0 && t.Optional && !t.Needed:
		return nil
	case len(source) == 0:
		return fmt.Errorf("%s: %w", t.Source, unix.ENOENT)
	}
	place, there, err := t.open()
	if err != nil || !there {
		return err
	}
	defer unix.Close(place)
	if err := moveMount(source[0].clone, place); err != nil {
		return err
	}
	if err := proveMounted(source[0].clone, t.Path); err != nil {
		return err
	}
	return putBack(t.Path, back)
}

// errLinked means that a file of which the session reads a part has become a
// symlink. The whole of what that leads to may be granted.
var errLinked = errors.New("a symlink is there since the settings were read; start the session again")

// open opens what is to be replaced. there is false if the session can do without:
// it is gone, or lies in a directory that was replaced.
func (t TemporaryDir) open() (place int, there bool, err error) {
	place, err = openPlain(t.Path)
	switch {
	case err == nil:
		return place, true, nil
	case t.Needed && errors.Is(err, unix.ELOOP):
		return -1, false, errLinked
	case t.Optional && isUnreachable(err):
		return -1, false, nil
	}
	return -1, false, err
}

// clone is a copy of the mounts at a path and below.
type clone struct {
	path  string
	clone int
	dir   bool // the path is a directory
}

// cloneAll copies the mounts at each path. A path that cannot be reached is left
// out: Landlock then does not grant it either. The caller closes the clones,
// also after an error.
func cloneAll(paths []string) (list []clone, err error) {
	for _, path := range paths {
		place, err := openPlain(path)
		if err != nil {
			if isUnreachable(err) {
				continue
			}
			return list, fmt.Errorf("%s: %w", path, err)
		}
		var stat unix.Stat_t
		err = unix.Fstat(place, &stat)
		tree := -1
		if err == nil {
			tree, err = unix.OpenTree(place, "",
				unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
		}
		unix.Close(place)
		if err != nil {
			return list, fmt.Errorf("%s: copy mounts: %w", path, err)
		}
		list = append(list, clone{path: path, clone: tree, dir: stat.Mode&unix.S_IFMT == unix.S_IFDIR})
	}
	return list, nil
}

func closeClones(list []clone) {
	for _, c := range list {
		unix.Close(c.clone)
	}
}

// putBack mounts clones on their paths below a directory of the session's own,
// after making the way there.
func putBack(dir string, list []clone) error {
	if len(list) == 0 {
		return nil
	}
	root, err := openPlain(dir)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	for _, c := range list {
		place, err := makePlace(root, strings.TrimPrefix(c.path, dir+"/"), c.dir)
		if err == nil {
			err = moveMount(c.clone, place)
			unix.Close(place)
		}
		if err == nil {
			err = proveMounted(c.clone, c.path)
		}
		if err != nil {
			return fmt.Errorf("mount %s back: %w", c.path, err)
		}
	}
	return nil
}

// errInTheWay means that an earlier session has put something else where a path
// must be mounted.
var errInTheWay = errors.New("an earlier session has put something in its place; restart the editor")

// makePlace makes a directory or an empty file to mount something on, with the
// directories on the way to it, and opens it. It follows no symlink.
func makePlace(root int, path string, isDir bool) (int, error) {
	at, err := unix.Dup(root)
	if err != nil {
		return -1, err
	}
	names := strings.Split(path, "/")
	for i, name := range names {
		next, err := makeName(at, name, isDir || i < len(names)-1)
		unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// makeName makes one name of a path, or finds that it is there.
func makeName(at int, name string, isDir bool) (int, error) {
	const dirMode, fileMode = 0o755, 0o600
	if isDir {
		if err := unix.Mkdirat(at, name, dirMode); err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
	} else {
		fd, err := unix.Openat(at, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, fileMode)
		if err == nil {
			unix.Close(fd)
		} else if !errors.Is(err, unix.EEXIST) {
			return -1, err
		}
	}
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var stat unix.Stat_t
	err = unix.Fstat(fd, &stat)
	kind := stat.Mode & unix.S_IFMT
	if err == nil && (isDir != (kind == unix.S_IFDIR) || kind == unix.S_IFLNK) {
		err = errInTheWay
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func moveMount(mount, place int) error {
	const byDescriptor = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(mount, "", place, "", byDescriptor); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// proveMounted returns an error unless a path leads to a mount.
func proveMounted(mount int, path string) error {
	want, err := mountID(mount, "")
	if err != nil {
		return err
	}
	got, err := mountID(unix.AT_FDCWD, filepath.Clean(path))
	if err == nil && got != want {
		err = errNotThere
	}
	return err
}
