//go:build unix

package window

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

// helloTimeout bounds how long a shell knows nothing of its window. Its session
// starts meanwhile.
const helloTimeout = 2 * time.Second

// Window is the shell's end. Its methods may be called from several goroutines.
type Window struct {
	known chan struct{}    // closed once the window has said hello, or never will
	conn  *usersocket.Conn // set before known is closed; nil if there is no window
	asks  bool             // likewise
	gone  chan struct{}    // closed when the connection has ended

	mu      sync.Mutex // guards the fields below
	last    int
	waiting map[int]chan protocol.Decision
}

// Dial connects to the window that a path names, in the background. Whatever is
// wrong with it, the shell goes on as without a window. stateDir is that of this
// user's sidecars.
func Dial(stateDir, path string) *Window { return dialFor(stateDir, path, helloTimeout) }

func dialFor(stateDir, path string, timeout time.Duration) *Window {
	w := &Window{known: make(chan struct{}), gone: make(chan struct{}), waiting: map[int]chan protocol.Decision{}}
	type result struct {
		conn *usersocket.Conn
		asks bool
	}
	dialled := make(chan result, 1)
	go func() {
		c, asks, err := dial(stateDir, path, time.Now().Add(timeout))
		if err != nil {
			c = nil
		}
		dialled <- result{c, asks}
	}()
	go func() {
		defer close(w.gone)
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case r := <-dialled:
			w.conn, w.asks = r.conn, r.asks
		case <-timer.C: // a silent file system
			go func() {
				if late := <-dialled; late.conn != nil {
					late.conn.Close()
				}
			}()
		}
		close(w.known)
		if w.conn != nil {
			w.read()
		}
	}()
	return w
}

func dial(stateDir, path string, end time.Time) (*usersocket.Conn, bool, error) {
	raw, _, err := usersocket.Dial(stateDir, path, name, end)
	if err != nil {
		return nil, false, err
	}
	c := usersocket.NewConn(raw, maxMessage)
	asks, err := expectHello(c, end)
	if err != nil {
		c.Close()
	}
	return c, asks, err
}

func expectHello(c *usersocket.Conn, end time.Time) (asks bool, err error) {
	if err := c.ReceiveBefore(end); err != nil {
		return false, err
	}
	var first FromWindow
	if err := c.Receive(&first); err != nil {
		return false, err
	}
	if first.Hello == nil || first.Hello.Version != version {
		return false, errors.New("the window speaks another version")
	}
	return first.Hello.Asks, c.ReceiveBefore(time.Time{})
}

// read hands out answers until the connection ends.
func (w *Window) read() {
	defer w.conn.Close()
	for {
		var message FromWindow
		if err := w.conn.Receive(&message); err != nil || message.Answer == nil {
			return
		}
		w.mu.Lock()
		waiting := w.waiting[message.Answer.ID]
		delete(w.waiting, message.Answer.ID)
		w.mu.Unlock()
		if waiting != nil {
			waiting <- message.Answer.Decision // it has room for one
		}
	}
}

// Open reports whether there is a window. It waits until that is known, for two
// seconds at most since Dial. A nil Window is not open.
func (w *Window) Open() bool {
	if w == nil {
		return false
	}
	<-w.known
	if w.conn == nil {
		return false
	}
	select {
	case <-w.gone:
		return false
	default:
		return true
	}
}

// Send sends a message, and reports whether the window may have it. It waits for
// a window that does not read, for some seconds.
func (w *Window) Send(message FromShell) bool {
	if !w.Open() {
		return false
	}
	err := w.conn.Send(message)
	if ended := message.Ended; errors.Is(err, usersocket.ErrTooLong) && ended != nil {
		short := *ended
		short.Review, short.Hints = nil, nil
		err = w.conn.Send(FromShell{Ended: &short})
	}
	return err == nil || errors.Is(err, usersocket.ErrTooLong)
}

// Ask waits for the user's decision; "" if ctx ends before. It returns false if the
// window cannot ask, or goes away before there is an answer.
func (w *Window) Ask(ctx context.Context, question protocol.RequestAccessParams) (protocol.Decision, bool) {
	if !w.Open() || !w.asks {
		return "", false
	}
	answered := make(chan protocol.Decision, 1)
	w.mu.Lock()
	w.last++
	id := w.last
	w.waiting[id] = answered
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, id)
	}()
	if err := w.conn.Send(FromShell{Ask: &Ask{ID: id, Question: question}}); err != nil {
		return "", false
	}
	select {
	case decision := <-answered:
		return decision, decision != ""
	case <-w.gone:
		return "", false
	case <-ctx.Done():
		select {
		case decision := <-answered:
			return decision, decision != ""
		default:
		}
		w.Send(FromShell{Withdraw: &id})
		return "", true
	}
}

// Close ends the connection. The window still gets what was sent.
func (w *Window) Close() {
	if w != nil && w.Open() {
		w.conn.Close()
	}
}
