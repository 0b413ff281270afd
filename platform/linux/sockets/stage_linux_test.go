package sockets

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify/notifytest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// auditArch is this machine's architecture (linux/audit.h).
var auditArch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[runtime.GOARCH]

// stage is a supervised caller and a directory with a short name for sockets.
type stage struct {
	*notifytest.Caller
	t   *testing.T
	dir string
}

// newStage supervises a caller with these grants. before, if not nil, runs on
// its thread first and returns New's second argument.
func newStage(t *testing.T, grants func(dir string) Grants, before func() *os.File) *stage {
	t.Helper()
	skip := func(reason string) { harness.Skip(t, "user_notification", reason) }
	if err := errors.Join(notify.Reach(), notify.ReachDescriptors()); err != nil {
		skip(err.Error())
	}
	s := &stage{Caller: notifytest.NewCaller(t, skip, unix.SYS_CONNECT, unix.SYS_BIND), t: t, dir: shortDir(t)}
	var own *os.File
	if before != nil {
		s.Do(func() { own = before() })
	}
	m, err := New(grants(s.dir), own)
	if err != nil {
		t.Fatal(err)
	}
	session, err := notify.Supervise(s.Listener, map[notify.Key]notify.Handler{
		{Arch: auditArch, Number: unix.SYS_CONNECT}: {Handle: m.Connect},
		{Arch: auditArch, Number: unix.SYS_BIND}:    {Handle: m.Bind},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
		m.Close()
	})
	return s
}

func noGrants(string) Grants { return Grants{} }

// shortDir is a temporary directory whose name leaves room in a socket's
// address.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s-")
	if err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// socket creates a Unix socket that is closed with the test.
func socket(t *testing.T, kind int) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// listen binds and listens, on the calling thread.
func listen(t *testing.T, fd int, name string) {
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		t.Errorf("bind %q: %v", name, err)
		return
	}
	if err := unix.Listen(fd, 8); err != nil {
		t.Errorf("listen at %q: %v", name, err)
	}
}

// inside creates a listener of the caller's; outside creates one that is not.
func (s *stage) inside(name string) {
	s.t.Helper()
	fd := socket(s.t, unix.SOCK_STREAM)
	s.Do(func() { listen(s.t, fd, name) })
}

func (s *stage) outside(name string) (fd int) {
	s.t.Helper()
	fd = socket(s.t, unix.SOCK_STREAM)
	listen(s.t, fd, name)
	return fd
}

// connect connects a new socket on the caller's thread.
func (s *stage) connect(kind int, to unix.Sockaddr) (err error) {
	s.t.Helper()
	fd := socket(s.t, kind)
	s.Do(func() { err = unix.Connect(fd, to) })
	return err
}

// expect fails the test unless connecting gives this error; nil is success.
func (s *stage) expect(name string, want error) {
	s.t.Helper()
	if got := s.connect(unix.SOCK_STREAM, &unix.SockaddrUnix{Name: name}); !errors.Is(got, want) {
		s.t.Errorf("connect to %q: %v, want %v", name, got, want)
	}
}
