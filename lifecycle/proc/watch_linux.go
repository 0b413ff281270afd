package proc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// watchProcess waits on a pidfd (Linux 5.3), which a reused pid cannot fool.
func watchProcess(ctx context.Context, pid int) (<-chan struct{}, error) {
	file, err := openPolled(pid)
	if errors.Is(err, unix.ENOSYS) {
		return pollProcess(ctx, pid)
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	gone := make(chan struct{})
	context.AfterFunc(ctx, func() { file.Close() }) // ends the wait below
	go func() {
		defer file.Close()
		if awaitEnd(file) == nil {
			close(gone)
		}
	}()
	return gone, nil
}

// openPolled opens a process's pidfd for the runtime's poller.
func openPolled(pid int) (*os.File, error) {
	fd, err := unix.PidfdOpen(pid, unix.O_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // PIDFD_NONBLOCK came with Linux 5.10
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// awaitEnd waits until the process of a pidfd has ended. The error says that the
// pidfd was closed.
func awaitEnd(pidfd *os.File) error {
	conn, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	// The runtime's poller calls this when the pidfd becomes readable, which it
	// does when the process ends.
	return conn.Read(func(fd uintptr) bool {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return n > 0 || (err != nil && !errors.Is(err, unix.EINTR))
	})
}

// awaitChild waits until a child has ended, without a thread. It may return
// early, so the caller waits for the child itself afterwards.
func awaitChild(pid int) {
	if pidfd, err := openPolled(pid); err == nil {
		_ = awaitEnd(pidfd)
		pidfd.Close()
	}
}
