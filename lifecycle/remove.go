//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeTree removes a session's directory. A session may have locked
// directories against their owner, or nested them arbitrarily deep: removeTree
// opens at most three descriptors. It follows no link and enters no mount. If
// ctx ends, another call continues. Several processes may remove the same
// directory.
//
// In each directory below the first it removes the files and moves the
// subdirectories up to the first. Then the directory is empty. So no directory
// is ever more than two levels down.
func removeTree(ctx context.Context, dir string) error {
	var top unix.Stat_t
	switch err := unix.Lstat(dir, &top); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return &os.PathError{Op: "remove", Path: dir, Err: err}
	case top.Mode&unix.S_IFMT != unix.S_IFDIR:
		return os.Remove(dir)
	}
	// The directory's own name is in the state directory, where no session can
	// replace it by a symlink.
	if top.Mode&0o700 != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	handle, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer handle.Close()
	r := &removal{ctx: ctx, top: handle, first: top}
	for range maxRemovals {
		for again := true; again; {
			if again, err = r.pass(); err != nil {
				return err
			}
		}
		err = os.Remove(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		// Without a failure, another process has put something there, which
		// removes the directory, too.
		if r.failure != nil || !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return errors.Join(err, r.failure)
}

// maxRemovals bounds how often a directory is emptied that another process
// fills. Each time finds what the other has moved.
const maxRemovals = 1000

// removal empties one directory.
type removal struct {
	ctx     context.Context
	top     *os.File
	first   unix.Stat_t // of top, to recognise its file system
	names   int         // how many names were given to moved directories
	moved   int
	failure error // the first one
}

// pass scans the first directory once. It reports whether anything has changed,
// so that the next pass may find more.
func (r *removal) pass() (again bool, err error) {
	if _, err := r.top.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	removed, moved := 0, r.moved
	err = r.each(r.top, func(name string) {
		if r.remove(name) {
			removed++
		}
	})
	return removed > 0 || r.moved > moved, errors.Join(err, r.ctx.Err())
}

// each calls do with the names in a directory. Names that appear or vanish
// meanwhile may be included or not.
func (r *removal) each(dir *os.File, do func(name string)) error {
	for r.ctx.Err() == nil {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if r.ctx.Err() != nil {
				return nil
			}
			do(name)
		}
		// ENOENT: another process has removed the directory.
		if errors.Is(err, io.EOF) || errors.Is(err, unix.ENOENT) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a name in the first directory, whatever it is, and reports
// whether it is gone.
func (r *removal) remove(name string) bool {
	gone, isDir := r.unlink(r.top, name)
	if gone || !isDir {
		return gone
	}
	if err := unlock(r.top, name); err != nil {
		return r.failUnlessGone(name, err)
	}
	fd, err := unix.Openat(int(r.top.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return r.failUnlessGone(name, err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Dev != r.first.Dev {
		return r.fail(name, errors.Join(err, unix.EXDEV))
	}
	if err := r.each(dir, func(child string) { r.moveUp(dir, child) }); err != nil {
		return r.fail(name, err)
	}
	gone, _ = r.unlink(r.top, name)
	return gone
}

// unlink removes a file or an empty directory. It reports whether it is gone,
// or otherwise whether it is a directory that is not empty.
func (r *removal) unlink(dir *os.File, name string) (gone, full bool) {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return true, false
	case !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM):
		return r.fail(name, err), false
	}
	err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return true, false
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return false, true
	default:
		return r.fail(name, err), false // a mount point is busy
	}
}

// moveUp removes what is in a directory below the first, or moves it into the
// first.
func (r *removal) moveUp(dir *os.File, child string) {
	_, full := r.unlink(dir, child)
	if !full {
		return
	}
	var name string
	for taken := error(nil); taken == nil && r.ctx.Err() == nil; {
		r.names++
		name = "." + strconv.Itoa(r.names)
		var there unix.Stat_t
		taken = unix.Fstatat(int(r.top.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW)
	}
	err := unlock(dir, child) // moving a directory writes its ".."
	if err == nil {
		err = unix.Renameat(int(dir.Fd()), child, int(r.top.Fd()), name)
	}
	if err != nil && !r.failUnlessGone(child, err) {
		return
	}
	r.moved++
}

// unlock makes a directory accessible to its owner again, which the session may
// have prevented. It follows no symlink.
func unlock(dir *os.File, child string) error {
	err := unix.Fchmodat(int(dir.Fd()), child, 0o700, unix.AT_SYMLINK_NOFOLLOW)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	root, err := os.OpenRoot("/dev/fd/" + strconv.Itoa(int(dir.Fd()))) // Linux before 6.6
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Chmod(child, 0o700)
}

// fail records the first failure. It returns false.
func (r *removal) fail(name string, err error) bool {
	if r.failure == nil {
		r.failure = fmt.Errorf("remove %q: %w", name, err)
	}
	return false
}

// failUnlessGone is fail, but it returns true if another process has removed the
// name.
func (r *removal) failUnlessGone(name string, err error) bool {
	return errors.Is(err, unix.ENOENT) || r.fail(name, err)
}
