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

// scenery is what doctor's attacks are aimed at: files, servers and processes
// of its own, so that nothing of the user's is at stake.
type scenery struct {
	dir     string // real path
	program string // this one
	// server, socket and abstract are addresses that somebody listens at;
	// bystander and target are process ids.
	server, socket, abstract, bystander, target string

	undo []func()
}

// sceneryDir makes the directory. A socket's path has 103 bytes at most (macOS;
// 107 on Linux, unix(7)), and a temporary directory may have more.
func sceneryDir() (string, error) {
	const most = 103 - len("/sidecar-0123456789/outside/s")
	place := os.TempDir()
	if real, err := filepath.EvalSymlinks(place); err == nil && len(real) > most {
		place = "/tmp"
	}
	return os.MkdirTemp(place, "sidecar-")
}

// newScenery makes one; it must be cleared.
func newScenery() (s *scenery, err error) {
	s = &scenery{}
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
	dir, err := sceneryDir()
	if err != nil {
		return s, err
	}
	s.undo = append(s.undo, func() { os.RemoveAll(dir) })
	if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return s, err
	}
	for _, name := range []string{"project/protected", "readable", "outside"} {
		if err := os.MkdirAll(s.path(name), 0o700); err != nil {
			return s, err
		}
	}
	err = errors.Join(os.WriteFile(s.secret(), []byte("secret"), 0o600),
		os.WriteFile(s.path("readable", "file"), []byte("no program\n"), 0o700))
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

// listen accepts and closes every connection.
func (s *scenery) listen(network, address string) (string, error) {
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

// waiter starts a process that waits until it is cleared away, and returns its
// id.
func (s *scenery) waiter() (string, error) {
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

// clear takes everything away, and what an attack left behind.
func (s *scenery) clear() {
	if s.dir != "" {
		if held, err := lockHeld(s.path("project", "lock")); err == nil && held {
			s.endLingerer()
		}
	}
	for i := len(s.undo) - 1; i >= 0; i-- {
		s.undo[i]()
	}
}

// endLingerer ends the process that stay left behind, by the id that it wrote.
// Only this program writes it: the control's, and that of a session whose
// processes were not ended, of which the caller has said so.
func (s *scenery) endLingerer() {
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
