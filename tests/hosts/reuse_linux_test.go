package hosts

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// reusePort lets others of this user listen at the same port.
func reusePort(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	return errors.Join(err, failed)
}
