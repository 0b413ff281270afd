package sockets

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A blocking caller waits for room in the queue of a busy server and gets it.
// Other servers are served meanwhile.
func TestConnect_WaitsForABusyServer(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	server := socket(t, unix.SOCK_STREAM)
	s.Do(func() {
		listen(t, server, s.path("in"))
		if err := unix.Listen(server, 0); err != nil {
			t.Error(err)
		}
	})
	to := &unix.SockaddrUnix{Name: s.path("in")}
	if err := s.connect(unix.SOCK_STREAM, to); err != nil {
		t.Fatal(err)
	}
	if err := s.connect(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, to); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("a non-blocking caller gets %v", err)
	}
	limited := socket(t, unix.SOCK_STREAM)
	limit := unix.Timeval{Usec: 20000}
	if err := unix.SetsockoptTimeval(limited, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	s.Do(func() {
		if err := unix.Connect(limited, to); !errors.Is(err, unix.EAGAIN) {
			t.Errorf("a caller with a timeout gets %v", err)
		}
	})
	if live, err := unix.GetsockoptTimeval(limited, unix.SOL_SOCKET, unix.SO_SNDTIMEO); err != nil || live.Sec != 0 ||
		live.Usec < limit.Usec {
		t.Errorf("the caller's timeout is %+v now, %v", live, err)
	}
	waits := socket(t, unix.SOCK_STREAM)
	done := s.Go(func() {
		if err := unix.Connect(waits, to); err != nil {
			t.Errorf("a caller that waits: %v", err)
		}
	})
	select {
	case <-done:
		t.Error("the server is busy, and the caller has not waited")
	case <-time.After(50 * time.Millisecond):
	}
	accepted, _, err := unix.Accept(server)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(accepted)
	<-done
}

// The same for a network server, which does not accept the connection until it
// has room.
func TestConnect_WaitsForTheNetwork(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if err := errors.Join(unix.Bind(server, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}),
		unix.Listen(server, 0)); err != nil {
		t.Fatal(err)
	}
	to, err := unix.Getsockname(server)
	if err != nil {
		t.Fatal(err)
	}
	var fds [3]int
	for i := range fds {
		if fds[i], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[i])
	}
	s.Do(func() { err = unix.Connect(fds[0], to) }) // fills the queue
	if err != nil {
		t.Fatal(err)
	}
	limit := unix.Timeval{Usec: 50000}
	if err := unix.SetsockoptTimeval(fds[1], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	s.Do(func() { err = unix.Connect(fds[1], to) })
	if !errors.Is(err, unix.EINPROGRESS) {
		t.Skipf("a full queue does not hold up connections here: %v", err)
	}
	done := s.Go(func() {
		if err := unix.Connect(fds[2], to); err != nil {
			t.Errorf("a caller that waits: %v", err)
		}
		if _, err := unix.Getpeername(fds[2]); err != nil {
			t.Errorf("the caller that has waited is not connected: %v", err)
		}
	})
	for range 2 {
		accepted, _, err := unix.Accept(server)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(accepted)
	}
	<-done
}
