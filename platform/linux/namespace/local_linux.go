package namespace

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
)

// openLocal makes the sockets through which the sidecar connects to servers
// of the session; see network.NewLocalhost.
func openLocal() ([]handshake.PassedFile, error) {
	family := unix.AF_INET
	if hasIPv6() {
		family = unix.AF_INET6
	}
	var passed []handshake.PassedFile
	for range canary.LocalSockets {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return passed, err
		}
		passed = append(passed, handshake.PassedFile{Kind: canary.PassedLocal, FD: fd})
	}
	return passed, nil
}

// hasIPv6 reports whether the loopback interface has its IPv6 address.
func hasIPv6() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}) == nil
}
