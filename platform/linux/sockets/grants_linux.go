package sockets

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Grants are the sockets of outside processes that a session may connect to.
type Grants struct {
	// Paths are real paths at which no session can put another socket. Whatever
	// listens there is granted, whenever it came.
	Paths []string
	// Pinned are real paths in directories that sessions may write. The one
	// socket is granted that lies there when New is called, if CheckPinned has
	// nothing against it; one that is made anew later is another, and is not
	// granted.
	Pinned []string
	// Abstract are names of abstract sockets, without the NUL before them.
	Abstract []string
}

// ErrNotBoundThere means that what lies at a path was not bound there.
var ErrNotBoundThere = errors.New(
	"it lies in a directory that sessions may write, and nobody listens who has bound it under this very name")

// CheckPinned says why a path of Grants.Pinned has no effect, or nil. A session
// could have moved another daemon's socket there, for a later session to be
// granted it. The name by which a daemon has bound its socket it cannot forge:
// that must be this path.
func CheckPinned(path string) error {
	there, err := pin(path)
	if err != nil {
		return fmt.Errorf("grant socket: %s: %w", path, err)
	}
	there.close()
	return nil
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

// boundAs makes sure that whoever listens at a place has bound it by this name,
// in our own network namespace.
func (p *socketFile) boundAs(name string) error {
	if !p.isSocket() {
		return errors.New("no socket")
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
