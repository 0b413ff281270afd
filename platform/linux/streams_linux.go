package linux

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var streamNames = [3]string{"standard input", "standard output", "standard error"}

// refuseStreams fails where a standard stream is a socket that the filter would let nobody make: it keeps new ones away, not one that the
// program was handed. Every other descriptor is closed by exec.
func refuseStreams(offline, mediated bool) error {
	for fd, name := range streamNames {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if errors.Is(err, unix.ENOTSOCK) || errors.Is(err, unix.EBADF) {
			continue // another file, or none
		}
		kind := 0
		if err == nil {
			kind, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		}
		switch {
		case err != nil:
			return fmt.Errorf("look at %s: %w", name, err)
		case offline && domain != unix.AF_UNIX:
			return fmt.Errorf("%s is a network socket, and allow_network is false: use a pipe, a file or a terminal", name)
		case mediated && domain == unix.AF_UNIX && kind == unix.SOCK_DGRAM:
			return fmt.Errorf("%s is a datagram socket, which reaches every other one: use a pipe, a file or a terminal", name)
		}
	}
	return nil
}
