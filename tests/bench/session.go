//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
)

// host starts programs on terminals: it is what the tables compare.
type host interface {
	// start starts a program in the project.
	start(argv ...string) (*session, error)
	// pid is the host's process, 0 if it is this one.
	pid() int
	stop()
}

// session is one program on a terminal. Only the length of its output is kept.
type session struct {
	read   atomic.Int64
	first  chan struct{} // closed with the first output
	heard  chan struct{} // has an element after any output
	exited chan struct{} // closed after the program's end and the last of its output
	once   sync.Once

	write func([]byte) error
	close func() error // returns when nothing of it is left
}

func newSession() *session {
	return &session{first: make(chan struct{}), heard: make(chan struct{}, 1), exited: make(chan struct{})}
}

// took notes n bytes of output.
func (s *session) took(n int) {
	s.read.Add(int64(n))
	s.once.Do(func() { close(s.first) })
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

// timeout bounds a wait for a host that does not answer.
const timeout = 60 * time.Second

var errNoAnswer = errors.New("no answer")

func await(what string, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return fmt.Errorf("wait for %s: %w", what, errNoAnswer)
	}
}

// bare is a terminal of this process, without any program in between.
type bare struct{ dir string }

func (bare) pid() int { return 0 }
func (bare) stop()    {}

func (b bare) start(argv ...string) (*session, error) {
	command := exec.Command(argv[0], argv[1:]...)
	command.Dir = b.dir
	master, err := pty.Start(command)
	if err != nil {
		return nil, err
	}
	s := newSession()
	s.write = func(data []byte) error { _, err := master.Write(data); return err }
	s.close = func() error {
		_ = command.Process.Kill()
		return await("a program's end", s.exited)
	}
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := master.Read(buffer)
			if n > 0 {
				s.took(n)
			}
			if err != nil {
				break // EIO: the other side is closed
			}
		}
		_ = command.Wait()
		master.Close()
		close(s.exited)
	}()
	return s, nil
}
