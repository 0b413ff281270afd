package notify

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// burst is how long a session's thread waits itself for the next call. Calls
// come in bursts, and only a thread that waits in poll(2) gets the processor
// from the caller directly; see setSyncWakeup. After that time the session waits
// in the runtime's poller, which needs no thread.
const burst = 10 * time.Millisecond

// arrivals tells when a listener has a notification. The runtime's poller must
// not know the listener itself: it would wake a thread for every call, also for
// those that another thread waits for. So it knows an epoll of the session's
// own, in which the listener is armed for one event at a time.
type arrivals struct {
	epoll *os.File
	added bool // the listener is in the epoll
}

func newArrivals() (*arrivals, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll: %w", err)
	}
	// The runtime's poller accepts only descriptors in non-blocking mode.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make epoll: %w", err)
	}
	a := &arrivals{epoll: os.NewFile(uintptr(fd), "epoll of a seccomp listener")}
	if err := a.epoll.SetReadDeadline(time.Time{}); err != nil { // fails if the poller has not accepted it
		a.close()
		return nil, fmt.Errorf("wait for listener: %w", err)
	}
	return a, nil
}

// wait waits until the listener has a notification, or no process uses its
// filter any more. The error is os.ErrClosed after close.
func (a *arrivals) wait(listener int) error {
	raw, err := a.epoll.SyscallConn()
	if err != nil {
		return err
	}
	var events [1]unix.EpollEvent
	var failed error
	armed := false
	err = raw.Read(func(epoll uintptr) bool {
		if !armed {
			if failed = a.arm(int(epoll), listener); failed != nil {
				return true
			}
			armed = true
		}
		n, err := unix.EpollWait(int(epoll), events[:], 0) // which disarms the listener
		if err != nil && !errors.Is(err, unix.EINTR) {
			failed = fmt.Errorf("wait for listener: %w", err)
		}
		return n > 0 || failed != nil
	})
	return errors.Join(err, failed)
}

func (a *arrivals) arm(epoll, listener int) error {
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}
	operation := unix.EPOLL_CTL_MOD
	if !a.added {
		operation = unix.EPOLL_CTL_ADD
	}
	if err := unix.EpollCtl(epoll, operation, listener, &event); err != nil {
		return fmt.Errorf("wait for listener: %w", err)
	}
	a.added = true
	return nil
}

func (a *arrivals) close() { _ = a.epoll.Close() }
