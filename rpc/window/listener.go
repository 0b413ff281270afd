//go:build unix

package window

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/usersocket"
)

const (
	// name is that of the socket in its directory.
	name = "window"
	// maxMessage bounds the bytes of a message.
	maxMessage = 256 << 10
	// maxShells bounds the shells that are connected at once. Others go on without
	// the window.
	maxShells = 128
	// startTimeout bounds the wait for the first message of a shell. It first
	// reads the settings, and starts its session.
	startTimeout = 30 * time.Second
)

// Listener is the window's end.
type Listener struct {
	// Path is that of the socket.
	Path string
	// Asks: questions are answered.
	Asks bool

	net    *net.UnixListener
	remove func()

	mu     sync.Mutex // guards the fields below
	shells map[*Shell]bool
	closed bool
}

// Listen makes a socket in a private directory just below the state directory,
// which remove removes.
func Listen(dir string, remove func()) (*Listener, error) {
	socket, err := usersocket.Listen(dir, name)
	if err != nil {
		return nil, err
	}
	return &Listener{Path: filepath.Join(dir, name), net: socket, remove: remove, shells: map[*Shell]bool{}}, nil
}

// Shell is a connected shell, whose first message has come.
type Shell struct {
	Started Started
	// PID is the process id of the shell, as the kernel says.
	PID int

	conn     *usersocket.Conn
	listener *Listener
}

// Serve calls serve for each shell, on a goroutine of its own, until Close. It
// reports who is refused. It returns when all calls of serve have returned.
func (l *Listener) Serve(serve func(*Shell), refused func(error)) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		c, err := l.net.AcceptUnix()
		if err != nil {
			if l.isClosed() {
				return
			}
			refused(err)
			time.Sleep(acceptPause) // such as too many open files
			continue
		}
		shell := &Shell{conn: usersocket.NewConn(c, maxMessage), listener: l}
		if shell.PID, err = usersocket.Peer(c); err == nil {
			err = l.admit(shell)
		}
		if err != nil {
			c.Close()
			refused(err)
			continue
		}
		serving.Go(func() {
			defer l.forget(shell)
			if err := l.greet(shell); err != nil {
				refused(err)
				return
			}
			serve(shell)
		})
	}
}

// acceptPause keeps a failing accept(2) from taking all time.
const acceptPause = 100 * time.Millisecond

func (l *Listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

func (l *Listener) admit(s *Shell) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.shells) >= maxShells {
		return fmt.Errorf("more than %d shells at once", maxShells)
	}
	l.shells[s] = true
	return nil
}

// greet exchanges the first messages.
func (l *Listener) greet(s *Shell) error {
	if err := s.conn.Send(FromWindow{Hello: &Hello{Version: version, Asks: l.Asks}}); err != nil {
		return err
	}
	_ = s.conn.ReceiveBefore(time.Now().Add(startTimeout))
	var first FromShell
	if err := s.conn.Receive(&first); err != nil {
		return err
	}
	_ = s.conn.ReceiveBefore(time.Time{})
	if first.Started == nil {
		return errors.New("the first message does not describe a session")
	}
	s.Started = *first.Started
	return nil
}

func (l *Listener) forget(s *Shell) {
	s.conn.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shells, s)
}

// Receive waits for the next message.
func (s *Shell) Receive() (FromShell, error) {
	var message FromShell
	err := s.conn.Receive(&message)
	return message, err
}

// Answer answers a question. A shell that is gone needs no answer.
func (s *Shell) Answer(answer Answer) { _ = s.conn.Send(FromWindow{Answer: &answer}) }

// Close ends every connection, and removes the socket.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	for shell := range l.shells {
		shell.conn.Close()
	}
	l.mu.Unlock()
	l.net.Close()
	l.remove()
}
