//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// targets are the targets of doctor's attacks: files, servers and processes of
// its own, so that an attack that works does no harm.
type targets struct {
	dir     string // real path
	program string // this program
	// server, socket and abstract are addresses of servers; bystander and target
	// are process ids.
	server, socket, abstract, bystander, target string

	undo []func()
}

// targetsDir makes the directory. The path of a socket has at most 103 bytes on
// macOS and 107 on Linux (unix(7)); that of a temporary directory may be longer.
func targetsDir() (string, error) {
	const most = 103 - len("/sidecar-0123456789/outside/s")
	place := os.TempDir()
	if real, err := filepath.EvalSymlinks(place); err == nil && len(real) > most {
		place = "/tmp"
	}
	return os.MkdirTemp(place, "sidecar-")
}

// newTargets makes all targets. The caller clears them.
func newTargets() (s *targets, err error) {
	s = &targets{}
	defer func() {
		if err != nil {
			s.clear()
			s, err = nil, fmt.Errorf("prepare attacks: %w", err)
		}
	}()
	if s.program, err = os.Executable(); err != nil {
		return s, err
	}
	if s.program, err = filepath.EvalSymlinks(s.program); err != nil {
		return s, err
	}
	dir, err := targetsDir()
	if err != nil {
		return s, err
	}
	s.undo = append(s.undo, func() { os.RemoveAll(dir) })
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return s, err
	}
	for _, name := range []string{"project/protected", "readable", "temporary", "outside"} {
		if err := os.MkdirAll(s.path(name), 0o700); err != nil {
			return s, err
		}
	}
	err = errors.Join(os.WriteFile(s.secret(), []byte("secret"), 0o600),
		os.WriteFile(s.path("readable", "file"), []byte("no program\n"), 0o700),
		os.WriteFile(s.path("readable", "hidden"), []byte("secret"), 0o600),
		os.WriteFile(s.path("temporary", "file"), []byte("secret"), 0o600))
	if err != nil {
		return s, err
	}
	if s.server, err = s.listen("tcp", "127.0.0.1:0"); err != nil {
		return s, err
	}
	if s.socket, err = s.listen("unix", s.path("outside", "s")); err != nil {
		return s, err
	}
	if abstractSockets {
		if s.abstract, err = s.listen("unix", "@"+filepath.Base(s.dir)+"-"+strconv.Itoa(os.Getpid())); err != nil {
			return s, err
		}
	}
	if s.bystander, err = s.waiter(); err != nil {
		return s, err
	}
	s.target, err = s.waiter()
	return s, err
}

// listen starts a server that accepts and closes every connection.
func (s *targets) listen(network, address string) (string, error) {
	server, err := net.Listen(network, address)
	if err != nil {
		return "", err
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	})
	s.undo = append(s.undo, func() { server.Close(); done.Wait() })
	return server.Addr().String(), nil
}

// waiter starts a process that waits until clear, and returns its id.
func (s *targets) waiter() (string, error) {
	command := exec.Command(s.program, "attempt", "wait")
	stdin, err := command.StdinPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	s.undo = append(s.undo, func() {
		stdin.Close()
		_ = command.Wait() // an attack may have ended it
	})
	return strconv.Itoa(command.Process.Pid), nil
}

// clear removes everything, and what an attack left behind.
func (s *targets) clear() {
	if s.dir != "" {
		if held, err := lockHeld(s.path("project", "lock")); err == nil && held {
			s.endLingerer()
		}
	}
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

// endLingerer kills the process that stay left behind, by the id that it wrote.
// It is the control's process, or one that a session failed to end.
func (s *targets) endLingerer() {
	file, err := os.Open(s.path("project", "lock"))
	if err != nil {
		return
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 20))
	if err != nil {
		return
	}
	_ = withPID(string(text), func(pid int) error { return unix.Kill(pid, unix.SIGKILL) })
}
