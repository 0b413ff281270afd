package sockets

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// The pauses between two attempts to connect to a Unix socket whose queue is
// full. No event says when there is room.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// connectBlocking connects a socket in blocking mode. No thread of the sidecar
// may wait as long as the caller would: for another machine, or for a server in
// the session that never accepts. So each attempt waits only a moment, and is
// repeated when it may succeed.
func (a *attempt) connectBlocking() (errno unix.Errno, answer bool) {
	pause := firstPause
	deadline := time.Time{}
	for {
		errno, limit, valid := a.connectBriefly()
		if !valid {
			return 0, false
		}
		again := errno == unix.EAGAIN && a.domain == unix.AF_UNIX || a.domain != unix.AF_UNIX &&
			(errno == unix.EINPROGRESS || errno == unix.EALREADY)
		if !again {
			return errno, true
		}
		left := time.Hour
		if limit > 0 { // the caller's SO_SNDTIMEO
			if deadline.IsZero() {
				deadline = time.Now().Add(limit)
			}
			if left = time.Until(deadline); left <= 0 {
				return onTimeout(a.domain), true
			}
		}
		var err error
		if a.domain == unix.AF_UNIX {
			_, err = a.call.Wait(-1, 0, min(pause, left))
			pause = min(2*pause, maxPause)
		} else {
			_, err = a.call.Wait(a.fd, unix.EPOLLOUT, left)
		}
		switch {
		case errors.Is(err, notify.ErrGone):
			return 0, false
		case err != nil:
			return translate(err), true
		}
	}
}

// onTimeout is the answer of connect(2) when SO_SNDTIMEO has run out
// (socket(7)).
func onTimeout(domain int) unix.Errno {
	if domain == unix.AF_UNIX {
		return unix.EAGAIN
	}
	return unix.EINPROGRESS
}

// connectBriefly connects with a timeout of one tick of the kernel's clock. The
// timeout is an option of the socket, which the caller shares. So its own value
// is restored at once, and no two goroutines change it at a time. The
// alternative, O_NONBLOCK, would affect every concurrent read.
func (a *attempt) connectBriefly() (errno unix.Errno, limit time.Duration, valid bool) {
	cookie, err := unix.GetsockoptUint64(a.fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return translate(err), 0, true
	}
	lock := a.locks.of(cookie)
	lock.Lock()
	defer lock.Unlock()
	own, err := unix.GetsockoptTimeval(a.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return translate(err), 0, true
	}
	if err := unix.SetsockoptTimeval(a.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &unix.Timeval{Usec: 1}); err != nil {
		return translate(err), 0, true
	}
	defer func() { _ = unix.SetsockoptTimeval(a.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, own) }()
	if !a.call.Valid() {
		return 0, 0, false
	}
	errno = a.connect()
	if errno == unix.EINTR { // interrupted by a signal to the sidecar; with a timeout the kernel does not restart
		errno = unix.EINPROGRESS
		if a.domain == unix.AF_UNIX {
			errno = unix.EAGAIN
		}
	}
	return errno, time.Duration(own.Nano()), true
}

// locks are mutexes for sockets. Several sockets may share one.
type locks [64]sync.Mutex

func (l *locks) of(cookie uint64) *sync.Mutex { return &l[cookie%uint64(len(l))] }
