package sockets

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
)

func TestConnect_ReachesOwnAndGrantedSockets(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(dir string) Grants {
		return Grants{Paths: []string{dir + "/granted"}, Abstract: []string{"granted" + dir}}
	}, nil)
	s.inside(s.path("in"))
	s.outside(s.path("out"))
	s.outside(s.path("granted"))
	s.expect(s.path("in"), nil)
	s.expect(s.path("granted"), nil)
	s.expect(s.path("out"), unix.EACCES)
	s.expect(s.path("missing"), unix.ENOENT)
	s.expect(s.path("in/below"), unix.ENOTDIR)
	s.expect(s.dir, unix.ECONNREFUSED)
	s.inside("@in" + s.dir)
	s.outside("@out" + s.dir)
	s.outside("@granted" + s.dir)
	s.expect("@in"+s.dir, nil)
	s.expect("@granted"+s.dir, nil)
	s.expect("@out"+s.dir, unix.EPERM)
	s.expect("@missing"+s.dir, unix.ECONNREFUSED)
	s.Do(func() {
		if err := canary.ProveSockets(); err != nil {
			t.Error(err)
		}
	})
	if err := canary.ProveSockets(); err == nil {
		t.Error("ProveSockets succeeds without a mediator")
	}
	// The kernel decides about the type of the socket.
	packets := socket(t, unix.SOCK_SEQPACKET)
	s.Do(func() { listen(t, packets, s.path("packets")) })
	if err := s.connect(unix.SOCK_SEQPACKET, &unix.SockaddrUnix{Name: s.path("packets")}); err != nil {
		t.Errorf("connect for packets: %v", err)
	}
	s.expect(s.path("packets"), unix.EPROTOTYPE)
}

func TestConnect_InvalidArguments(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	fd, file := socket(t, unix.SOCK_STREAM), 0
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file = int(null.Fd())
	for _, test := range []struct {
		fd     int
		raw    string
		length int
		want   unix.Errno
	}{
		{-1, "\x01\x00/a", 4, unix.EBADF},
		{file, "\x01\x00/a", 4, unix.ENOTSOCK},
		{fd, "\x01\x00/a", -1, unix.EINVAL},
		{fd, "\x01\x00/a", 129, unix.EINVAL},
		{fd, "\x01\x00/a", 2, unix.EINVAL},
		{fd, "\x00\x00/a", 4, unix.EINVAL},
		{fd, "\x02\x00/a", 4, unix.EINVAL},
		{fd, "", 16, unix.EFAULT},
	} {
		var got unix.Errno
		s.Do(func() { got = rawConnect(test.fd, test.raw, test.length) })
		if got != test.want {
			t.Errorf("%d, %q, %d: %v, want %v", test.fd, test.raw, test.length, got, test.want)
		}
	}
}

// rawConnect calls connect(2) with a length that need not be that of the
// address. An empty address points to unmapped memory.
func rawConnect(fd int, raw string, length int) unix.Errno {
	address := uintptr(8)
	bytes := []byte(raw)
	if len(bytes) > 0 {
		address = uintptr(unsafe.Pointer(&bytes[0]))
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), address, uintptr(length))
	runtime.KeepAlive(bytes)
	return errno
}

// Other families' addresses are allowed, except for what needs an
// administrator.
func TestConnect_OtherFamilies(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	server, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	port := server.Addr().(*net.TCPAddr).Port
	local := &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_STREAM | unix.SOCK_NONBLOCK, unix.SOCK_DGRAM} {
		fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		s.Do(func() { err = unix.Connect(fd, local) })
		if err != nil && !errors.Is(err, unix.EINPROGRESS) {
			t.Errorf("connect with kind %#x: %v", kind, err)
		}
		unix.Close(fd)
	}
	link, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(link)
	for address, want := range map[unix.SockaddrNetlink]error{{}: nil, {Pid: 1}: unix.EPERM, {Groups: 1}: unix.EPERM} {
		s.Do(func() { err = unix.Connect(link, &address) })
		if !errors.Is(err, want) {
			t.Errorf("connect netlink to %+v: %v, want %v", address, err, want)
		}
	}
}

// Another bind(2) does not turn an outside process's listener into the
// session's own.
func TestBind_DoesNotAdoptBoundSockets(t *testing.T) {
	t.Parallel()
	s := newStage(t, noGrants, nil)
	fd := s.outside(s.path("out"))
	s.Do(func() {
		if err := unix.Bind(fd, &unix.SockaddrUnix{Name: s.path("again")}); !errors.Is(err, unix.EINVAL) {
			t.Errorf("bind again: %v", err)
		}
	})
	s.expect(s.path("out"), unix.EACCES)
}

func TestPinned(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	agent, other := filepath.Join(dir, "agent"), filepath.Join(dir, "other")
	first, second := socket(t, unix.SOCK_STREAM), socket(t, unix.SOCK_STREAM)
	listen(t, first, agent)
	listen(t, second, other)
	var checked unix.Stat_t
	accepted := func(fd int) error { return unix.Fstat(fd, &checked) }
	if err := CheckPinned(agent, accepted); err != nil {
		t.Errorf("a socket bound there: %v", err)
	}
	var there unix.Stat_t
	if err := unix.Stat(agent, &there); err != nil || checked.Ino != there.Ino || checked.Dev != there.Dev {
		t.Errorf("the descriptor is of inode %d, not %d: %v", checked.Ino, there.Ino, err)
	}
	if err := CheckPinned(agent, func(int) error { return unix.EIO }); !errors.Is(err, unix.EIO) {
		t.Errorf("a socket that is not accepted: %v", err)
	}
	accepted = func(int) error { t.Error("another socket is accepted"); return nil }
	s := newStage(t, func(string) Grants { return Grants{Pinned: []string{agent}} }, nil)
	s.expect(agent, nil)
	if err := os.Rename(other, agent); err != nil {
		t.Fatal(err)
	}
	s.expect(agent, unix.EACCES)
	if err := CheckPinned(agent, accepted); !errors.Is(err, ErrNotBoundThere) {
		t.Errorf("a socket moved there: %v", err)
	}
	if err := os.Remove(agent); err != nil {
		t.Fatal(err)
	}
	if err := CheckPinned(agent, accepted); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no socket: %v", err)
	}
	if err := os.WriteFile(agent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckPinned(agent, accepted); err == nil {
		t.Error("a file is taken for a socket")
	}
	s = newStage(t, func(string) Grants { return Grants{Pinned: []string{agent}} }, nil)
	s.expect(agent, unix.ECONNREFUSED)
}

// A session that binds without end uses bounded memory.
func TestCookies_ArePruned(t *testing.T) {
	t.Parallel()
	namespace, err := openDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.close()
	live := socket(t, unix.SOCK_STREAM)
	cookie, err := unix.GetsockoptUint64(live, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		t.Fatal(err)
	}
	var c cookies
	c.add(cookie, namespace)
	for gone := range uint64(3 * minPruned) {
		c.add(1<<60+gone, namespace) // no socket has these
	}
	if len(c.set) > minPruned || !c.has(cookie) {
		t.Errorf("%d cookies are kept, that of the open socket: %t", len(c.set), c.has(cookie))
	}
}
