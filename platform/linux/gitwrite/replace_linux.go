package gitwrite

import (
	"bytes"
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// ErrChanged means that a file is no longer what was judged.
var ErrChanged = errors.New("another program has changed the file meanwhile")

// Replace writes a file's new content in its place. fd is open for reading and
// writing. A reader sees the old file or the new one if both fit in a page of
// memory, and the same holds if this process is killed.
func Replace(fd int, before, after []byte) error {
	// Sidecars take turns. git outside holds its own lock, which is the
	// session's file.
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	defer func() { _ = unix.Flock(fd, unix.LOCK_UN) }()
	now, err := Read(fd)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, before) {
		return ErrChanged
	}
	if len(after) > len(before) {
		// A full disk must not leave half of a file.
		err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(after)))
		if err != nil && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
			return err
		}
	}
	// One write does it all: empty lines cover what is left of a longer file,
	// until they are cut off.
	text := append(bytes.Clone(after), bytes.Repeat([]byte("\n"), max(0, len(before)-len(after)))...)
	from := common(text, before)
	if err := write(fd, text[from:], from); err != nil {
		return errors.Join(err, write(fd, before[from:], from), unix.Ftruncate(fd, int64(len(before))))
	}
	if len(text) > len(after) {
		_ = unix.Ftruncate(fd, int64(len(after))) // the empty lines mean nothing
	}
	return nil
}

// common is the length of what two texts begin with alike.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func write(fd int, text []byte, at int) error {
	for len(text) > 0 {
		n, err := unix.Pwrite(fd, text, int64(at))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return io.ErrShortWrite
		}
		text, at = text[max(n, 0):], at+max(n, 0)
	}
	return nil
}
