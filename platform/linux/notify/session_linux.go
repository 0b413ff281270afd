package notify

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Key identifies a system call: its architecture (AUDIT_ARCH_*, linux/audit.h)
// and its number there.
type Key struct {
	Arch   uint32
	Number int
}

// Handler answers one kind of call.
type Handler struct {
	// Handle must answer the call once, by one of Call's methods. It is called
	// on a goroutine of its own, unless Quick is set.
	Handle func(*Call)
	// Quick says that Handle never waits for another process or a file system.
	// The goroutine that reads the listener then calls it, one call at a time.
	Quick bool
	// FastPath, if not nil, may answer a call before Handle does, and reports
	// whether it has. It must never wait, and is called one call at a time.
	FastPath func(*Call) bool
}

// Table finds the handler of a call. Sessions that supervise the same calls may
// share Places, so that each idle session needs little memory.
type Table struct {
	// Places are the calls' places in Handlers.
	Places   map[Key]int
	Handlers []Handler
}

func (t Table) find(key Key) (Handler, bool) {
	place, known := t.Places[key]
	if !known {
		return Handler{}, false
	}
	return t.Handlers[place], true
}

// maxHandled bounds the calls of one session that are handled at a time. Each
// may hold a thread while a file system does not answer. Further callers wait
// in the kernel.
const maxHandled = 16

// Session is the supervision of one session.
type Session struct {
	listener *os.File
	arrivals *arrivals
	decider  Decider
	stop     uint32 // not 0: receive returns soon
	sizes    sizes
	handlers Table
	slots    chan struct{} // holds a token for each call that is being handled
	waiting  waiting

	closing chan struct{} // closed by Close
	once    sync.Once
	loop    sync.WaitGroup
	empty   chan struct{}
}

// Supervise answers the calls of a listener until Close, or until no process is
// left that could make one. It takes ownership of the listener, also on an
// error. A call without a handler fails with ENOSYS.
func Supervise(listener *os.File, handlers map[Key]Handler) (*Session, error) {
	table := Table{Places: map[Key]int{}}
	for key, handler := range handlers {
		table.Places[key] = len(table.Handlers)
		table.Handlers = append(table.Handlers, handler)
	}
	return SuperviseWith(listener, table, nil)
}

// SuperviseWith is Supervise with a decider, which may be nil. It decides about
// a call before its handler.
func SuperviseWith(listener *os.File, handlers Table, decider Decider) (*Session, error) {
	defer listener.Close()
	s := &Session{
		handlers: handlers, decider: decider, slots: make(chan struct{}, maxHandled), closing: make(chan struct{}),
		empty: make(chan struct{}),
	}
	var err error
	if s.sizes, err = kernelSizes(); err != nil {
		return nil, err
	}
	if s.sizes.request > maxSize || s.sizes.response > maxSize {
		return nil, errors.New("the kernel's notifications are longer than expected")
	}
	fd, err := unix.FcntlInt(listener.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("take over listener: %w", err)
	}
	// In blocking mode the file below stays out of the runtime's poller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("take over listener: %w", err)
	}
	setSyncWakeup(fd)
	s.listener = os.NewFile(uintptr(fd), "seccomp listener")
	if s.arrivals, err = newArrivals(); err != nil {
		s.listener.Close()
		return nil, err
	}
	s.loop.Go(s.run)
	return s, nil
}

// Empty returns a channel that is closed when no process uses the session's
// filter any more.
func (s *Session) Empty() <-chan struct{} { return s.empty }

// Close ends the supervision; later calls fail with ENOSYS. It does not wait
// for handlers that are blocked: a file system that does not answer must not
// delay the end of a session. While processes still use the filter it may take
// as long as burst. Closing twice is harmless.
func (s *Session) Close() error {
	var err error
	s.once.Do(func() {
		close(s.closing)
		atomic.StoreUint32(&s.stop, 1)
		s.arrivals.close()
		if err = s.listener.Close(); errors.Is(err, os.ErrClosed) {
			err = nil // by run
		}
		s.loop.Wait()
		s.waiting.close()
	})
	return err
}

func (s *Session) run() {
	// However this ends, callers must fail instead of waiting forever.
	defer s.listener.Close()
	defer s.arrivals.close()
	_ = s.control(s.answerAll) // keeps the descriptor valid until it returns
}

func (s *Session) answerAll(listener int) {
	for {
		found, next, errno := s.receive(listener)
		switch {
		case errno != 0 || s.closed():
			return // closed, or nothing can be supervised any more
		case found == eventUnused:
			close(s.empty)
			return
		case found == eventNone:
			if s.arrivals.wait(listener) != nil {
				return
			}
			continue
		case found == eventAnswered:
			continue // another session's turn
		}
		s.dispatch(&Call{
			session: s, ID: next.id, TID: int(next.pid), Arch: next.arch, Number: int(next.nr), Args: next.args,
		})
	}
}

// Threads bounds the threads that wait for calls, or decide about them, at the
// same time. If the kernel refuses one, Go's runtime ends the program, so the
// program starts as many before it starts a session.
const Threads = mostBursts + mostGlances

const (
	mostBursts  = 24
	mostGlances = 8
	// glanceCalls bounds the calls that a session has answered before it is
	// another one's turn.
	glanceCalls = 64
	// glanceTimeout bounds the wait for a turn: in each of the others a file
	// system may not answer.
	glanceTimeout = time.Second
)

// bursts holds a token for each session that waits for its next call on a
// thread, and glances one for each further session that has a call. Those wait
// by the poller.
var (
	bursts  = make(chan struct{}, mostBursts)
	glances = make(chan struct{}, mostGlances)
)

// turn waits for a token, and returns how long and for how many calls to stay.
func (s *Session) turn() (timeout time.Duration, calls int, done func()) {
	select {
	case bursts <- struct{}{}:
		return burst, 0, func() { <-bursts }
	default:
	}
	select {
	case glances <- struct{}{}:
		return 0, glanceCalls, func() { <-glances }
	default:
	}
	late := time.NewTimer(glanceTimeout)
	defer late.Stop()
	select {
	case glances <- struct{}{}:
		return 0, glanceCalls, func() { <-glances }
	case <-late.C:
	case <-s.closing:
	}
	return 0, glanceCalls, func() {}
}

func (s *Session) receive(listener int) (event, request, unix.Errno) {
	timeout, calls, done := s.turn()
	defer done()
	r := receivers.Get().(*receiver)
	defer receivers.Put(r)
	r.listener, r.decider, r.stop = uintptr(listener), s.decider, &s.stop
	defer func() { r.decider, r.stop = nil, nil }()
	if s.decider != nil {
		s.decider.Begin()
		defer s.decider.End()
	}
	return r.receive(timeout, calls)
}

func (s *Session) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *Session) dispatch(call *Call) {
	handler, known := s.handlers.find(Key{call.Arch, call.Number})
	switch {
	case !known:
		call.Fail(unix.ENOSYS)
	case handler.Quick:
		handler.Handle(call)
	case handler.FastPath != nil && handler.FastPath(call):
	default:
		select {
		case s.slots <- struct{}{}:
			go func() {
				defer func() { <-s.slots }()
				handler.Handle(call)
			}()
		case <-s.closing:
		}
	}
}

// control calls do with the listener's descriptor, unless the listener is
// closed.
func (s *Session) control(do func(fd int)) error {
	raw, err := s.listener.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { do(int(fd)) })
}

// ErrGone means that the caller no longer waits: it was killed, or the
// session's supervision has ended.
var ErrGone = errors.New("the caller is gone")
