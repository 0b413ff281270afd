//go:build unix

package platform

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// conn is the sidecar's end of the handshake. It collects the descriptors that
// arrive with what is read; see unix(7), SCM_RIGHTS.
type conn struct {
	*os.File
	passed []*os.File
}

// maxPassed bounds the descriptors of one message.
const maxPassed = 12

// Read reads bytes and collects the descriptors that come with them.
func (c *conn) Read(p []byte) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	control := make([]byte, unix.CmsgSpace(maxPassed*4))
	var n, controlled int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, controlled, _, _, failed = unix.Recvmsg(int(fd), p, control, receiveFlags)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err == nil && controlled > 0 {
		err = c.receiveFiles(control[:controlled])
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *conn) receiveFiles(control []byte) error {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return fmt.Errorf("receive descriptors from the stage: %w", err)
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return fmt.Errorf("receive descriptors from the stage: %w", err)
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd) // if receiveFlags has not done it
			c.passed = append(c.passed, os.NewFile(uintptr(fd), "passed by the stage"))
		}
	}
	return nil
}

// refuse makes every later write of the stage fail, so that it executes
// nothing. It returns true if the stage has written nothing before.
func (c *conn) refuse() bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	nothing := false
	err = raw.Control(func(fd uintptr) {
		if unix.Shutdown(int(fd), unix.SHUT_RD) != nil {
			return
		}
		var one [1]byte
		n, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_DONTWAIT|unix.MSG_PEEK)
		nothing = n <= 0 && (err == nil || errors.Is(err, unix.EAGAIN))
	})
	return err == nil && nothing
}

// drop closes the descriptors that nobody has taken.
func (c *conn) drop() {
	for _, file := range c.passed {
		if file != nil {
			file.Close()
		}
	}
}

// socketpair returns both ends of a stream socket. The runtime's poller serves
// the first, so it supports deadlines.
func socketpair() (ours *conn, theirs *os.File, err error) {
	// Other goroutines start processes too. The lock keeps the descriptors from
	// being inherited before they are close-on-exec.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return &conn{File: os.NewFile(uintptr(fds[0]), "handshake")}, os.NewFile(uintptr(fds[1]), "stage end of handshake"),
		nil
}
