package linux

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var streamNames = [3]string{"standard input", "standard output", "standard error"}

// refuseNetworkStreams fails where a standard stream is a socket of any family but Unix: a filter keeps new sockets away, not one that
// the program was handed. Every other descriptor is closed by exec.
func refuseNetworkStreams() error {
	for fd, name := range streamNames {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		switch {
		case errors.Is(err, unix.ENOTSOCK), errors.Is(err, unix.EBADF): // another file, or none
		case err != nil:
			return fmt.Errorf("look at %s: %w", name, err)
		case domain != unix.AF_UNIX:
			return fmt.Errorf("%s is a network socket, and allow_network is false: use a pipe, a file or a terminal", name)
		}
	}
	return nil
}
