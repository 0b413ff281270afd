package canary

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const diagTimeout = 5 // seconds; the kernel answers at once

// OpenDiag returns a netlink socket that lists the Unix sockets of the calling
// thread's network namespace (sock_diag(7)); see package sockets. It is
// close-on-exec.
func OpenDiag() (fd int, err error) {
	fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: diagTimeout})
		if err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("make socket that lists sockets: %w", err)
	}
	return fd, nil
}
