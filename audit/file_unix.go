//go:build unix

package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

const (
	// current is the name of the file that is written. Others are older.
	current = "audit.jsonl"
	older   = "audit-"
	suffix  = ".jsonl"
	// lockName is the file whose lock a writer holds. It is a file of its own
	// because the others are renamed.
	lockName = "lock"
)

const (
	// maxFile is the size from which on a file is renamed, and maxOlder how many
	// such files are kept.
	maxFile  = 10 << 20
	maxOlder = 9
)

var (
	// errPlace means that something else is in the place of the trail.
	errPlace = errors.New("not a private file of this user")
	// errHeld means that the lock was not free in time.
	errHeld = errors.New("another program holds it")
)

// patience is how long a writer on a remote file system waits for the lock. It
// must be over before fsguard gives up: the whole file system would count as one
// that does not answer.
const patience = time.Second

// directory is an open directory of a trail. One process may have several.
type directory struct {
	path string
	dir  *os.File
	lock *os.File
	file *os.File // the current one; nil until it is needed
	// patience bounds the wait for the lock; 0 is no bound.
	patience time.Duration
	// limits are constants, except in tests.
	maxFile  int64
	maxOlder int
}

// appendLine writes a line into a directory on a file system that may not
// answer.
var appendLine = fsguard.Define("append to the audit trail", func(path string, line []byte) ([]byte, error) {
	d, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	defer d.close()
	d.patience = patience
	return nil, d.write(line)
})

// openDirectory makes a directory, if it is missing, and opens it.
func openDirectory(path string) (*directory, error) {
	if err := fsguard.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	d := &directory{path: path, maxFile: maxFile, maxOlder: maxOlder}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	d.dir = os.NewFile(uintptr(fd), path)
	if err := private(d.dir, true); err != nil {
		d.close()
		return nil, err
	}
	if d.lock, err = d.open(lockName, unix.O_RDWR|unix.O_CREAT); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// open opens a regular file of the directory that belongs to this user alone.
func (d *directory) open(name string, flags int) (*os.File, error) {
	// Without O_NONBLOCK, a FIFO in its place would hold up the writer.
	fd, err := unix.Openat(int(d.dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	path := filepath.Join(d.path, name)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.EMLINK):
		return nil, fmt.Errorf("%s: %w", path, errPlace)
	case err != nil:
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Not os.NewFile's poller: the files are regular.
	file := os.NewFile(uintptr(fd), path)
	if err := private(file, false); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// private checks that an open file, or directory, is this user's alone.
func private(file *os.File, directory bool) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	right := info.Mode().IsRegular() && ok && st.Nlink == 1
	if directory {
		right = info.IsDir() && ok
	}
	if !right || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: %w", file.Name(), errPlace)
	}
	return nil
}

func (d *directory) close() {
	for _, file := range []*os.File{d.dir, d.lock, d.file} {
		if file != nil {
			file.Close()
		}
	}
}

// hold takes the lock, and returns what gives it back.
func (d *directory) hold(how int) (release func(), err error) {
	const pause = 5 * time.Millisecond
	if d.patience > 0 {
		how |= unix.LOCK_NB
	}
	for end := time.Now().Add(d.patience); ; {
		err := unix.Flock(int(d.lock.Fd()), how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			if time.Now().Before(end) {
				time.Sleep(pause)
				continue
			}
			err = errHeld
		}
		return func() { _ = unix.Flock(int(d.lock.Fd()), unix.LOCK_UN) }, err
	}
}

// write appends a line, whole or not at all. The caller ends it with "\n".
func (d *directory) write(line []byte) error {
	release, err := d.hold(unix.LOCK_EX)
	if err != nil {
		return fmt.Errorf("lock %s: %w", d.lock.Name(), err)
	}
	defer release()
	size, err := d.prepare(int64(len(line)))
	if err != nil {
		return err
	}
	n, err := d.file.Write(line)
	if err == nil {
		return nil
	}
	if n > 0 { // the disk is full: the rest of the line will not come
		_ = d.file.Truncate(size)
	}
	return err
}

// prepare opens the current file, and makes room for a line in it. It returns
// the file's size. A line that a writer has not finished, because it was killed,
// is ended.
func (d *directory) prepare(room int64) (size int64, err error) {
	if !d.isCurrent() {
		if d.file != nil {
			d.file.Close()
			d.file = nil
		}
		if d.file, err = d.open(current, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT); err != nil {
			return 0, err
		}
	}
	info, err := d.file.Stat()
	if err != nil {
		return 0, err
	}
	size = info.Size()
	if size > 0 {
		var last [1]byte
		if _, err := d.file.ReadAt(last[:], size-1); err != nil {
			return 0, err
		}
		if last[0] != '\n' {
			if _, err := d.file.WriteString("\n"); err != nil {
				return 0, err
			}
			size++
		}
	}
	if size == 0 || size+room <= d.maxFile {
		return size, nil
	}
	if err := d.rotate(); err != nil {
		return 0, err
	}
	return d.prepare(room)
}

// isCurrent reports whether the open file still has its name. Another sidecar
// may have renamed it, or the user removed it.
func (d *directory) isCurrent() bool {
	if d.file == nil {
		return false
	}
	var opened, named unix.Stat_t
	err := errors.Join(unix.Fstat(int(d.file.Fd()), &opened),
		unix.Fstatat(int(d.dir.Fd()), current, &named, unix.AT_SYMLINK_NOFOLLOW))
	return err == nil && opened.Dev == named.Dev && opened.Ino == named.Ino
}

// rotate renames the current file and removes the oldest ones.
func (d *directory) rotate() error {
	to := older + time.Now().UTC().Format("20060102T150405.000000000Z") + suffix
	fd := int(d.dir.Fd())
	if err := unix.Renameat(fd, current, fd, to); err != nil {
		return fmt.Errorf("rename %s: %w", d.file.Name(), err)
	}
	names, err := d.older()
	if err != nil {
		return nil // the next one removes them
	}
	for len(names) > d.maxOlder {
		_ = unix.Unlinkat(fd, names[0], 0)
		names = names[1:]
	}
	return nil
}

// older are the names of the older files, oldest first.
func (d *directory) older() ([]string, error) {
	listed, err := os.Open(d.path)
	if err != nil {
		return nil, err
	}
	defer listed.Close()
	names, err := listed.Readdirnames(-1)
	names = slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, older) || !strings.HasSuffix(name, suffix)
	})
	slices.Sort(names)
	return names, err
}

// openAll opens all files of a trail, oldest first. None is renamed meanwhile,
// unless its writers hold the lock for long.
func openAll(path string) ([]io.ReadCloser, error) {
	d := &directory{path: path}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	d.dir = os.NewFile(uintptr(fd), path)
	defer d.close()
	if d.lock, err = d.open(lockName, unix.O_RDONLY); err == nil {
		for range 100 {
			release, err := d.hold(unix.LOCK_SH | unix.LOCK_NB)
			if err == nil {
				defer release()
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	names, err := d.older()
	if err != nil {
		return nil, err
	}
	var files []io.ReadCloser
	for _, name := range append(names, current) {
		file, err := d.open(name, unix.O_RDONLY)
		switch {
		case errors.Is(err, syscall.ENOENT):
		case err != nil:
			for _, file := range files {
				file.Close()
			}
			return nil, err
		default:
			files = append(files, file)
		}
	}
	return files, nil
}
