package fsguard

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// openForReading opens a path without symlinks. It waits neither for the writer of
// a FIFO nor for the holder of a lease.
func openForReading(path string) (*os.File, error) {
	how := &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, how)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		default:
			return os.NewFile(uintptr(fd), path), nil
		}
	}
}
