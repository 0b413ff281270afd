package canary

import (
	"golang.org/x/sys/unix"
)

// AbstractName is an abstract name to which the mediator denies every connection.
// The kernel alone would answer ECONNREFUSED.
const AbstractName = "sandbox-sidecar/canary"

// RefusedAbstract is the answer to a denied connection to an abstract name, the
// same as Landlock's.
const RefusedAbstract = unix.EPERM

// ProveSockets checks that a mediator answers for the calling thread.
func ProveSockets() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return expect("connect through the mediator", unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + AbstractName}),
		RefusedAbstract)
}
