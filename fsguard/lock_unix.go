//go:build unix

package fsguard

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked means that another process keeps a lock for too long.
var ErrLocked = errors.New("another process keeps it locked")

// Lock takes the lock of a file, which it makes with mode 0600, and waits for
// another owner as long as within says. The file must be on a file system that
// answers. The lock ends with unlock or with this process.
func Lock(path string, within time.Duration) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	// Not a blocking flock(2): the owner of the lock may be stopped, and the
	// editor waits for us.
	for deadline := time.Now().Add(within); ; {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			// Closing releases the lock, and so does the kernel if we die.
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) || time.Now().After(deadline) {
			file.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				err = ErrLocked
			}
			return nil, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}
