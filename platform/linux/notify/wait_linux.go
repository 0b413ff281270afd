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
// such as another machine. Each holds a descriptor of ours.
const maxWaiting = 512

// checkInterval is how often a caller is looked at that waits for long: whether
// it is still there, and whether a signal wants it.
const checkInterval = 50 * time.Millisecond

// Wait waits until a file is ready for the events (EPOLLIN …), or a time has
// passed; fd -1 waits for the time alone. It holds neither a thread nor one of
// the session's slots meanwhile. The error is ErrGone where the caller waits no
// longer, EINTR where a signal is to interrupt it, and EAGAIN where too many
// wait. A descriptor can be waited for by one call at a time; a duplicate is
// another.
func (c *Call) Wait(fd int, events uint32, timeout time.Duration) (ready bool, err error) {
	became, forget, err := c.session.waiting.add(fd, events)
	if err != nil {
		return false, err
	}
	defer forget()
	return c.await(became, timeout)
}

// Await waits until a channel is closed or a time has passed; else it is as
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
	defer func() { s.slots <- struct{}{} }() // the caller's answer is then not far
	end := time.NewTimer(timeout)
	defer end.Stop()
	checks := time.NewTicker(checkInterval)
	defer checks.Stop()
	for {
		select {
		case <-became:
			return true, nil
		case <-end.C:
			return false, c.check() // who waits in short pieces is looked at too
		case <-s.closing:
			return false, ErrGone
		case <-checks.C:
			if err := c.check(); err != nil {
				return false, err
			}
		}
	}
}

// check looks at the caller of a call that takes long.
func (c *Call) check() error {
	switch {
	case !c.Valid():
		return ErrGone
	case c.interrupted():
		return unix.EINTR
	}
	return nil
}

// waiting are the files that calls of a session wait for. The sockets of
// callers may be in blocking mode, which is theirs to choose and shared with
// them, and the runtime's poller does not take such: an epoll of the session's
// own does, and the runtime waits for that. The zero value is ready.
type waiting struct {
	mu     sync.Mutex // guards what follows
	closed bool
	count  int
	next   int32
	epoll  *os.File                // nil until the first
	ready  map[int32]chan struct{} // by what was told to epoll
	loop   sync.WaitGroup
}

// add returns a channel that is closed when the file is ready, and what is to
// be called before the file is closed.
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
		// The caller's own descriptor would keep the file in the epoll after
		// ours is closed.
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
