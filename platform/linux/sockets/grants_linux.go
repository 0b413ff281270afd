package sockets

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Grants are the sockets of outside processes that a session may connect to.
type Grants struct {
	// Paths are real paths at which no session can put another socket. Whatever
	// listens there is granted, now or later.
	Paths []string
	// Pinned are real paths in directories that sessions may write. Only the
	// socket that is there when New is called is granted, if CheckPinned
	// returns nil. A socket that is created there later is not granted.
	Pinned []string
	// Abstract are names of abstract sockets, without the NUL before them.
	Abstract []string
}

// ErrNotBoundThere means that the socket at a path was not bound under that
// path.
var ErrNotBoundThere = errors.New(
	"sessions can write to its directory, and no process listens that has bound this very path")

// CheckPinned returns why a path of Grants.Pinned has no effect, without the path,
// or nil. A session could have moved another daemon's socket there, so that a later
// session is granted it. It cannot forge the name that the daemon has bound,
// which must be this path.
//
// The path may lead to another socket as soon as CheckPinned has returned. So
// accepted is called with a descriptor of the socket that was checked, to note
// which that is; its error is returned. It must not keep the descriptor.
func CheckPinned(path string, accepted func(fd int) error) error {
	there, err := pin(path)
	if err != nil {
		return err
	}
	defer there.close()
	return accepted(there.fd)
}

func pin(path string) (*socketFile, error) {
	there, err := newSocketFile(openat2(unix.AT_FDCWD, path, unix.RESOLVE_NO_SYMLINKS))
	if err != nil {
		return nil, err
	}
	if err := there.boundAs(path); err != nil {
		there.close()
		return nil, err
	}
	return there, nil
}

// boundAs checks that a process listens on the socket in our own network
// namespace, and has bound it under this name.
func (p *socketFile) boundAs(name string) error {
	if !p.isSocket() {
		return errors.New("it is not a socket")
	}
	ours, err := openDiag()
	if err != nil {
		return err
	}
	defer ours.close()
	found, err := ours.list(listening)
	if err != nil {
		return err
	}
	inode, err := p.kernelInode()
	if err != nil {
		return err
	}
	bound := false
	for _, s := range found {
		if s.inode == inode && p.onDevice(os.Getpid(), s.device) {
			if s.name != name {
				return ErrNotBoundThere
			}
			bound = true
		}
	}
	if !bound {
		return ErrNotBoundThere
	}
	return nil
}
