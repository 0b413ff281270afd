package notify

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxWaiting bounds the calls of one session that wait for something outside,
// such as another machine. Each holds a descriptor of the sidecar.
const maxWaiting = 512

// checkInterval is how often a long wait checks that the caller still exists
// and has no pending signal.
const checkInterval = 50 * time.Millisecond

// Wait waits until a file is ready for the events (EPOLLIN …), or the timeout
// has passed; fd -1 waits for the timeout alone. Meanwhile it holds neither a
// thread nor one of the session's slots. The error is ErrGone if the caller no
// longer waits, EINTR if a signal must interrupt it, and EAGAIN if too many
// calls wait. Only one call at a time may wait for a descriptor; a duplicate is
// another descriptor.
func (c *Call) Wait(fd int, events uint32, timeout time.Duration) (ready bool, err error) {
	became, forget, err := c.session.waiting.add(fd, events)
	if err != nil {
		return false, err
	}
	defer forget()
	return c.await(became, timeout)
}

// Await waits until a channel is closed or the timeout has passed, otherwise as
// Wait.
func (c *Call) Await(done <-chan struct{}, timeout time.Duration) (ready bool, err error) {
	_, forget, err := c.session.waiting.add(-1, 0)
	if err != nil {
		return false, err
	}
	defer forget()
	return c.await(done, timeout)
}

func (c *Call) await(became <-chan struct{}, timeout time.Duration) (ready bool, err error) {
	s := c.session
	<-s.slots
	defer func() { s.slots <- struct{}{} }() // the call is answered soon after
	end := time.NewTimer(timeout)
	defer end.Stop()
	checks := time.NewTicker(checkInterval)
	defer checks.Stop()
	for {
		select {
		case <-became:
			return true, nil
		case <-end.C:
			return false, c.check() // a caller that waits in short pieces must be checked too
		case <-s.closing:
			return false, ErrGone
		case <-checks.C:
			if err := c.check(); err != nil {
				return false, err
			}
		}
	}
}

// check checks on the caller of a long call.
func (c *Call) check() error {
	switch {
	case !c.Valid():
		return ErrGone
	case c.interrupted():
		return unix.EINTR
	}
	return nil
}

// waiting holds the files that a session's calls wait for. A caller's socket
// may be in blocking mode, which the caller chooses and shares, and the
// runtime's poller does not accept those. So the session has an epoll of its
// own, and the poller waits for that. The zero value is ready.
type waiting struct {
	mu     sync.Mutex // guards what follows
	closed bool
	count  int
	next   int32
	epoll  *os.File                // nil until the first
	ready  map[int32]chan struct{} // by the id given to epoll
	loop   sync.WaitGroup
}

// add returns a channel that is closed when the file is ready, and a function
// to call before the file is closed.
func (w *waiting) add(fd int, events uint32) (became <-chan struct{}, forget func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return nil, nil, ErrGone
	case w.count >= maxWaiting:
		return nil, nil, unix.EAGAIN
	}
	if fd < 0 {
		w.count++
		return nil, func() { w.remove(0, -1) }, nil
	}
	if w.epoll == nil {
		if err := w.open(); err != nil {
			return nil, nil, err
		}
	}
	w.next++
	id, channel := w.next, make(chan struct{})
	event := unix.EpollEvent{Events: events | unix.EPOLLONESHOT, Fd: id}
	if err := w.control(unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return nil, nil, err
	}
	w.ready[id] = channel
	w.count++
	return channel, func() { w.remove(id, fd) }, nil
}

func (w *waiting) remove(id int32, fd int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count--
	if fd < 0 {
		return
	}
	delete(w.ready, id)
	if !w.closed {
		// Remove it explicitly: the caller's own descriptor would keep the file
		// in the epoll after ours is closed.
		_ = w.control(unix.EPOLL_CTL_DEL, fd, nil)
	}
}

func (w *waiting) control(operation, fd int, event *unix.EpollEvent) error {
	raw, err := w.epoll.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(epoll uintptr) { failed = unix.EpollCtl(int(epoll), operation, fd, event) })
	return errors.Join(err, failed)
}

func (w *waiting) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // as in Supervise
		unix.Close(fd)
		return fmt.Errorf("make epoll: %w", err)
	}
	w.epoll, w.ready = os.NewFile(uintptr(fd), "epoll"), map[int32]chan struct{}{}
	w.loop.Go(w.run)
	return nil
}

func (w *waiting) run() {
	raw, err := w.epoll.SyscallConn()
	if err != nil {
		return
	}
	events := make([]unix.EpollEvent, 64)
	for {
		n := 0
		err := raw.Read(func(epoll uintptr) bool {
			n, _ = unix.EpollWait(int(epoll), events, 0)
			return n > 0
		})
		if err != nil {
			return // closed
		}
		w.mu.Lock()
		for _, event := range events[:n] {
			if channel, there := w.ready[event.Fd]; there {
				close(channel)
				delete(w.ready, event.Fd)
			}
		}
		w.mu.Unlock()
	}
}

func (w *waiting) close() {
	w.mu.Lock()
	w.closed = true
	epoll := w.epoll
	w.mu.Unlock()
	if epoll != nil {
		_ = epoll.Close()
		w.loop.Wait()
	}
}
