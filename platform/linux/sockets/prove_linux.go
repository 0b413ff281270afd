package sockets

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// canaryName is an abstract name to which the mediator denies every connection.
// The kernel alone would answer ECONNREFUSED.
const canaryName = "sandbox-sidecar/canary"

// Prove checks that a mediator answers for the calling thread.
func Prove() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return notify.Expect("connect through the mediator", unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + canaryName}),
		refusedAbstract)
}
