package sockets

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// The pauses between two looks at a Unix socket whose queue of connections is
// full. No event tells when it is not.
const (
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// connectBlocking connects a socket that is in blocking mode. No thread of ours
// may wait for as long as the caller would, for another machine, or for a
// server of the session's own that never accepts: the kernel is let wait for a
// moment only, and then asked again when there is something to ask.
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
		if limit > 0 { // SO_SNDTIMEO of the caller's
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

// onTimeout is what connect(2) answers when SO_SNDTIMEO has run out
// (socket(7)).
func onTimeout(domain int) unix.Errno {
	if domain == unix.AF_UNIX {
		return unix.EAGAIN
	}
	return unix.EINPROGRESS
}

// connectBriefly connects with a time limit of one tick of the kernel's clock.
// The limit is an option of the socket, which is the caller's too: it gets its
// own back at once, and no two of us change it at a time. The other way,
// O_NONBLOCK, would be seen by every read.
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
	if errno == unix.EINTR { // by a signal of our own; with a time limit the kernel does not restart
		errno = unix.EINPROGRESS
		if a.domain == unix.AF_UNIX {
			errno = unix.EAGAIN
		}
	}
	return errno, time.Duration(own.Nano()), true
}

// locks are mutexes for sockets, some of which share one.
type locks [64]sync.Mutex

func (l *locks) of(cookie uint64) *sync.Mutex { return &l[cookie%uint64(len(l))] }
