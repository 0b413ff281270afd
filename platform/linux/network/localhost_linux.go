package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// localhost connects to servers on a session's own localhost. A socket belongs
// to the network namespace that it was made in, and an accepted one to that of
// its listener. So two sockets of the session's are enough to make more: one
// connects to the other, and both ends are then disconnected (connect(2),
// AF_UNSPEC). Nobody has to enter the namespace, which takes rights that an
// ordinary user does not have.
type localhost struct {
	mu        sync.Mutex // guards what follows
	listener  int
	caller    int
	listening bool
	closed    bool
}

// NewLocalhost takes over sockets of a session's network namespace that nothing
// was done with.
func NewLocalhost(listener, caller *os.File) platform.Localhost {
	defer listener.Close()
	defer caller.Close()
	return &localhost{listener: unblocked(listener), caller: unblocked(caller)}
}

// unblocked returns a copy of a socket that does not block; -1 if there is none.
func unblocked(socket *os.File) int {
	fd, err := unix.FcntlInt(socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	_ = unix.SetNonblock(fd, true)
	return fd
}

// Close closes the two sockets.
func (l *localhost) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(unix.Close(l.listener), unix.Close(l.caller))
}

// localTimeout bounds what takes microseconds, unless a server of the session
// does not accept.
const localTimeout = 5 * time.Second

// Dial connects to a port: by IPv4, and else by IPv6.
func (l *localhost) Dial(ctx context.Context, port uint16) (*net.TCPConn, error) {
	conn, err := l.dial(ctx, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
	if errors.Is(err, unix.ECONNREFUSED) {
		if conn6, err6 := l.dial(ctx, netip.AddrPortFrom(netip.IPv6Loopback(), port)); err6 == nil {
			return conn6, nil
		}
	}
	return conn, err
}

func (l *localhost) dial(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
	fd, family, err := l.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("make a socket in the session: %w", err)
	}
	file := os.NewFile(uintptr(fd), "socket of the session")
	defer file.Close()
	address, err := sockaddr(family, to)
	if err != nil {
		return nil, err
	}
	if err := connectNow(ctx, fd, address); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.TCPConn), nil
}

// open makes a socket in the session's network namespace.
func (l *localhost) open(ctx context.Context) (fd, family int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return -1, 0, os.ErrClosed
	}
	if family, err = unix.GetsockoptInt(l.listener, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
		return -1, 0, err
	}
	if !l.listening {
		// At no address: an accepted socket would be tied to it.
		if err := unix.Listen(l.listener, 1); err != nil {
			return -1, 0, err
		}
		l.listening = true
	}
	at, err := addressOf(l.listener)
	if err != nil {
		return -1, 0, err
	}
	loopback := netip.IPv6Loopback()
	if family == unix.AF_INET {
		loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	address, err := sockaddr(family, netip.AddrPortFrom(loopback, at.Port()))
	if err != nil {
		return -1, 0, err
	}
	defer func() { _ = disconnect(l.caller) }()
	if err := connectNow(ctx, l.caller, address); err != nil {
		return -1, 0, err
	}
	caller, err := addressOf(l.caller)
	if err != nil {
		return -1, 0, err
	}
	fd, err = l.accept(ctx, caller)
	if err != nil {
		return -1, 0, err
	}
	if err := disconnect(fd); err != nil {
		unix.Close(fd)
		return -1, 0, err
	}
	return fd, family, nil
}

// accept takes the caller's connection. The session may have connected, too.
func (l *localhost) accept(ctx context.Context, caller netip.AddrPort) (int, error) {
	for {
		if err := awaitReady(ctx, l.listener, unix.POLLIN); err != nil {
			return -1, err
		}
		fd, from, err := unix.Accept4(l.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil:
			return -1, err
		}
		if plainSockaddr(from) == caller {
			return fd, nil
		}
		unix.Close(fd)
	}
}

// disconnect makes a connected socket as good as new (connect(2)).
func disconnect(fd int) error {
	unspecified := [unix.SizeofSockaddrInet4]byte{} // AF_UNSPEC is 0
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspecified)),
		uintptr(len(unspecified))); errno != 0 {
		return errno
	}
	_, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR) // which forgets that
	return err
}

// connectNow connects a non-blocking socket, and waits for that.
func connectNow(ctx context.Context, fd int, to unix.Sockaddr) error {
	err := unix.Connect(fd, to)
	if !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	if err := awaitReady(ctx, fd, unix.POLLOUT); err != nil {
		return err
	}
	number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && number != 0 {
		err = unix.Errno(number)
	}
	return err
}

// awaitReady waits for a socket, for localTimeout at most.
func awaitReady(ctx context.Context, fd int, events int16) error {
	const step = 100 * time.Millisecond // after which ctx is looked at
	for begun := time.Now(); time.Since(begun) < localTimeout; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(step.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n > 0:
			return nil
		}
	}
	return os.ErrDeadlineExceeded
}

func sockaddr(family int, to netip.AddrPort) (unix.Sockaddr, error) {
	switch {
	case family == unix.AF_INET6:
		return &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}, nil
	case to.Addr().Is4():
		return &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}, nil
	}
	return nil, unix.EAFNOSUPPORT
}
