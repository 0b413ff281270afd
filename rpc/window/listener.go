//go:build unix

package window

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
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
	path := filepath.Join(dir, name)
	short, done, err := address(path)
	if err != nil {
		return nil, err
	}
	defer done()
	socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
	if err != nil {
		return nil, err
	}
	socket.SetUnlinkOnClose(false) // the directory goes
	if err := os.Chmod(path, 0o600); err != nil {
		socket.Close()
		return nil, err
	}
	return &Listener{Path: path, net: socket, remove: remove, shells: map[*Shell]bool{}}, nil
}

// Shell is a connected shell, whose first message has come.
type Shell struct {
	Started Started
	// PID is the process id of the shell, as the kernel says.
	PID int

	conn     *conn
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
		shell := &Shell{conn: newConn(c), listener: l}
		if err := l.admit(shell); err != nil {
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
	who, err := checkPeer(s.conn.net)
	if err != nil {
		return err
	}
	s.PID = who.pid
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
	if err := s.conn.send(FromWindow{Hello: &Hello{Version: version, Asks: l.Asks}}); err != nil {
		return err
	}
	_ = s.conn.net.SetReadDeadline(time.Now().Add(startTimeout))
	var first FromShell
	if err := s.conn.receive(&first); err != nil {
		return err
	}
	_ = s.conn.net.SetReadDeadline(time.Time{})
	if first.Started == nil {
		return errors.New("the first message does not describe a session")
	}
	s.Started = *first.Started
	return nil
}

func (l *Listener) forget(s *Shell) {
	s.conn.net.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shells, s)
}

// Receive waits for the next message.
func (s *Shell) Receive() (FromShell, error) {
	var message FromShell
	err := s.conn.receive(&message)
	return message, err
}

// Answer answers a question. A shell that is gone needs no answer.
func (s *Shell) Answer(answer Answer) { _ = s.conn.send(FromWindow{Answer: &answer}) }

// Close ends every connection, and removes the socket.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	for shell := range l.shells {
		shell.conn.net.Close()
	}
	l.mu.Unlock()
	l.net.Close()
	l.remove()
}
