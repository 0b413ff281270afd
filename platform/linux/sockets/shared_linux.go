package sockets

import (
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

func (m *Mediator) isDatagrams(fd int) bool {
	if m.Datagrams == nil {
		return false
	}
	_, is := m.Datagrams.Datagram(fd)
	return is
}

func (m *Mediator) connectDatagrams(a *attempt) unix.Errno {
	of := *a
	of.domain = family(a.raw)
	to, ok := (&Internet{Call: a.call, attempt: &of}).To()
	if !ok && of.domain != unix.AF_UNSPEC {
		return unix.EINVAL
	}
	return m.Datagrams.ConnectDatagrams(a.call, a.fd, to)
}

// bindsDatagrams reports whether a bind(2) is to give a socket that replaces one
// of UDP an address of the internet. It needs none.
func (m *Mediator) bindsDatagrams(call *notify.Call) bool {
	if m.Datagrams == nil {
		return false
	}
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !m.isDatagrams(fd) {
		return false
	}
	raw := make([]byte, pathOffset)
	return call.Read(call.Args[1], raw) == nil && family(raw) != unix.AF_UNIX
}

// Listen answers listen(2) in a session that shares the machine's network: only
// Unix sockets may. The call never continues in the kernel, because another
// thread could have replaced the descriptor meanwhile. So clients see the
// sidecar's process id as that of their peer, with the session's user.
func (m *Mediator) Listen(call *notify.Call) {
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		call.Fail(translate(err))
		return
	}
	defer unix.Close(fd)
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		call.Fail(translate(err))
		return
	}
	if domain != unix.AF_UNIX {
		call.Fail(unix.EACCES)
		return
	}
	caller, err := call.Identity()
	if err == nil && call.Valid() {
		refused := caller.As(func() { err = unix.Listen(fd, int(int32(call.Args[1]))) })
		if err == nil {
			err = refused
		}
	}
	if err != nil {
		call.Fail(translate(err))
		return
	}
	call.Succeed()
}
