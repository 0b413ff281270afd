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
	fd, err := unix.PidfdOpen(pid, unix.O_NONBLOCK)
	if errors.Is(err, unix.EINVAL) { // PIDFD_NONBLOCK came with Linux 5.10
		if fd, err = unix.PidfdOpen(pid, 0); err == nil {
			err = unix.SetNonblock(fd, true)
		}
	}
	if errors.Is(err, unix.ENOSYS) {
		return pollProcess(ctx, pid)
	}
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	gone := make(chan struct{})
	context.AfterFunc(ctx, func() { file.Close() }) // ends the wait below
	go func() {
		defer file.Close()
		// The runtime's poller calls this when the pidfd becomes readable,
		// which it does when the process ends.
		err := conn.Read(func(fd uintptr) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 0)
			return n > 0 || (err != nil && !errors.Is(err, unix.EINTR))
		})
		if err == nil {
			close(gone)
		}
	}()
	return gone, nil
}
