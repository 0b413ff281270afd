package fsguard

import (
	"os"

	"golang.org/x/sys/unix"
)

// openForReading opens a path without symlinks. It does not wait for the writer of
// a FIFO.
func openForReading(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NOFOLLOW_ANY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
