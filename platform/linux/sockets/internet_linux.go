package sockets

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Internet is a connect(2) of an internet socket.
type Internet struct {
	*notify.Call
	attempt *attempt
}

// ConnectInternet answers a connect(2) of an internet socket, unless answer is
// false: then the caller is gone. The error 0 means success.
type ConnectInternet func(*Internet) (errno unix.Errno, answer bool)

// InternetOnly returns a handler of connect(2) that decides about internet
// sockets alone, for a session in a network namespace of its own whose Unix
// sockets somebody else governs. All others continue. If the caller replaces
// the socket meanwhile, the kernel connects an internet socket in a namespace
// from which no route leads out.
func InternetOnly(decide ConnectInternet) func(*notify.Call) {
	shared := &locks{}
	return func(call *notify.Call) {
		a, errno := receive(call, shared)
		if errno != 0 {
			call.Fail(errno)
			return
		}
		defer unix.Close(a.fd)
		if a.domain != unix.AF_INET && a.domain != unix.AF_INET6 {
			call.Continue()
			return
		}
		respond(call)(decide(&Internet{Call: call, attempt: a}))
	}
}

// FD is a duplicate of the caller's socket. It is closed once the call is
// answered.
func (i *Internet) FD() int { return i.attempt.fd }

// V6 reports whether it is an IPv6 socket.
func (i *Internet) V6() bool { return i.attempt.domain == unix.AF_INET6 }

// To returns the address to connect to; an IPv4 address never has IPv6's form.
// It returns false if the kernel has to answer: the address dissolves a
// connection or is invalid.
func (i *Internet) To() (netip.AddrPort, bool) {
	const length4, length6 = 16, 28 // struct sockaddr_in; sockaddr_in6 (ipv6(7))
	raw := i.attempt.raw
	switch {
	case !i.V6() && family(raw) == unix.AF_INET && len(raw) >= length4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])), true
	case i.V6() && family(raw) == unix.AF_INET6 && len(raw) >= length6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), binary.BigEndian.Uint16(raw[2:])), true
	}
	return netip.AddrPort{}, false
}

// Connect connects to the address that the caller has passed.
func (i *Internet) Connect() (errno unix.Errno, answer bool) { return i.attempt.connectSocket() }

// ConnectOnce connects to the address that the caller has passed, and does not
// wait as the caller would: the answer is EINPROGRESS instead. valid is false if
// the caller is gone. A caller that changes its socket's mode or timeout at the
// same time can make it wait, until Abandon is called.
func (i *Internet) ConnectOnce() (errno unix.Errno, valid bool) {
	errno, _, valid = i.attempt.connectBriefly()
	return errno, valid
}

// Dissolves reports whether the caller wants to dissolve a connection
// (connect(2), AF_UNSPEC).
func (i *Internet) Dissolves() bool {
	return len(i.attempt.raw) >= pathOffset && family(i.attempt.raw) == unix.AF_UNSPEC
}

// Dissolve dissolves the connection of the caller's socket.
func (i *Internet) Dissolve() (errno unix.Errno, answer bool) {
	return i.attempt.dissolving().connectSocket()
}

// Abandon dissolves the connection of the caller's socket also if the caller is
// gone: other processes may have the socket, too. It does not block.
func (i *Internet) Abandon() unix.Errno { return i.attempt.dissolving().connect() }

func (a *attempt) dissolving() *attempt {
	to := *a
	to.raw = binary.NativeEndian.AppendUint16(make([]byte, 0, 16), unix.AF_UNSPEC)[:16]
	return &to
}

// ConnectTo connects the caller's socket to another address.
func (i *Internet) ConnectTo(to netip.AddrPort) (errno unix.Errno, answer bool) {
	a := *i.attempt
	a.raw = make([]byte, 0, 28)
	if i.V6() {
		a.raw = binary.NativeEndian.AppendUint16(a.raw, unix.AF_INET6)
		a.raw = binary.BigEndian.AppendUint16(a.raw, to.Port())
		address := to.Addr().As16()
		a.raw = append(append(a.raw, 0, 0, 0, 0), address[:]...)
		a.raw = append(a.raw, 0, 0, 0, 0)
	} else {
		a.raw = binary.NativeEndian.AppendUint16(a.raw, unix.AF_INET)
		a.raw = binary.BigEndian.AppendUint16(a.raw, to.Port())
		address := to.Addr().As4()
		a.raw = append(append(a.raw, address[:]...), make([]byte, 8)...)
	}
	return a.connectSocket()
}

// Timeout returns how long the caller may be held: 0 if its socket is in
// non-blocking mode.
func (i *Internet) Timeout(unlimited time.Duration) time.Duration {
	flags, err := unix.FcntlInt(uintptr(i.attempt.fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_NONBLOCK != 0 {
		return 0
	}
	limit, err := unix.GetsockoptTimeval(i.attempt.fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil || limit.Nano() <= 0 {
		return unlimited
	}
	return time.Duration(limit.Nano())
}
