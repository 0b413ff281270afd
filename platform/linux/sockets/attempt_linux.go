package sockets

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// attempt is a connection that was allowed.
type attempt struct {
	call   *notify.Call
	fd     int // the caller's socket
	domain int // its family
	raw    []byte
	// caller is the identity to connect with. It is used for Unix sockets only.
	caller notify.Identity
	locks  *locks
}

// connectSocket connects the caller's socket. answer is false if the caller is
// gone.
func (a *attempt) connectSocket() (errno unix.Errno, answer bool) {
	flags, err := unix.FcntlInt(uintptr(a.fd), unix.F_GETFL, 0)
	if err != nil {
		return translate(err), true
	}
	kind, err := unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return translate(err), true
	}
	if flags&unix.O_NONBLOCK == 0 && kind != unix.SOCK_DGRAM && kind != unix.SOCK_RAW {
		return a.connectBlocking()
	}
	if !a.call.Valid() {
		return 0, false
	}
	return a.connect(), true
}

// connect calls connect(2) with the caller's identity: file permissions apply
// to the caller, and the server sees the caller's credentials.
func (a *attempt) connect() (errno unix.Errno) {
	do := func() {
		var first unsafe.Pointer
		if len(a.raw) > 0 {
			first = unsafe.Pointer(&a.raw[0])
		}
		_, _, errno = unix.Syscall(unix.SYS_CONNECT, uintptr(a.fd), uintptr(first), uintptr(len(a.raw)))
	}
	if a.domain != unix.AF_UNIX {
		do()
		return errno
	}
	if err := a.caller.As(do); err != nil {
		return translate(err)
	}
	return errno
}
