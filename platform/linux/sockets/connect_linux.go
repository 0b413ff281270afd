package sockets

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Connect answers connect(2). It copies the caller's address once and
// duplicates the socket, decides about these copies and connects them. The call
// never continues in the kernel, because another thread could have changed both
// meanwhile.
func (m *Mediator) Connect(call *notify.Call) {
	a, errno := receive(call, &m.sockets)
	if errno != 0 {
		call.Fail(errno)
		return
	}
	defer unix.Close(a.fd)
	respond(call)(m.connect(a))
}

// respond answers a call, unless its caller is gone.
func respond(call *notify.Call) func(errno unix.Errno, answer bool) {
	return func(errno unix.Errno, answer bool) {
		switch {
		case !answer:
		case errno != 0:
			call.Fail(errno)
		default:
			call.Succeed()
		}
	}
}

// storageLength is sizeof(struct sockaddr_storage), the kernel's limit for an
// address.
const storageLength = 128

// receive copies the arguments of connect(2). The caller closes the socket,
// unless there is an error.
func receive(call *notify.Call, shared *locks) (*attempt, unix.Errno) {
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		return nil, translate(err)
	}
	a := &attempt{call: call, fd: fd, locks: shared}
	if errno := a.read(); errno != 0 {
		unix.Close(fd)
		return nil, errno
	}
	return a, 0
}

func (a *attempt) read() unix.Errno {
	length := int32(a.call.Args[2])
	if length < 0 || length > storageLength {
		return unix.EINVAL
	}
	a.raw = make([]byte, length)
	if err := a.call.Read(a.call.Args[1], a.raw); err != nil {
		return translate(err)
	}
	var err error
	if a.domain, err = unix.GetsockoptInt(a.fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
		return translate(err)
	}
	return 0
}

// connect returns answer false if the caller is gone and needs no answer.
func (m *Mediator) connect(attempt *attempt) (errno unix.Errno, answer bool) {
	raw := attempt.raw
	switch attempt.domain {
	case unix.AF_INET, unix.AF_INET6:
		if m.Internet != nil {
			return m.Internet(&Internet{Call: attempt.call, attempt: attempt})
		}
		return attempt.connectSocket()
	case unix.AF_NETLINK:
		// An address other than the kernel's needs CAP_NET_ADMIN. Sessions
		// never have it, but the sidecar may.
		const kernelLength = 12 // struct sockaddr_nl: family, padding, port, groups
		if len(raw) >= kernelLength && binary.NativeEndian.Uint64(raw[4:]) != 0 {
			return unix.EPERM, true
		}
		return attempt.connectSocket()
	case unix.AF_UNIX:
		return m.connectUnix(attempt)
	}
	return unix.EACCES, true // the filter lets no session create other families
}

func (m *Mediator) connectUnix(a *attempt) (errno unix.Errno, answer bool) {
	if family(a.raw) != unix.AF_UNIX && m.isDatagrams(a.fd) {
		return m.connectDatagrams(a), true
	}
	to, ok := parse(a.raw)
	if !ok || family(a.raw) != unix.AF_UNIX {
		return unix.EINVAL, true
	}
	var err error
	if a.caller, err = a.call.Identity(); err != nil {
		return translate(err), true
	}
	if to.isAbstract {
		return m.connectAbstract(a, to)
	}
	var there *socketFile
	refused := a.caller.As(func() { there, err = locate(a.call.TID, to.path) })
	if err = errors.Join(refused, err); err != nil {
		return translate(err), true
	}
	defer there.close()
	if refusal := m.mayReach(there, a.call.TID); refusal != 0 {
		if path, err := there.path(); err == nil && refusal == refusedPath {
			m.report(a.call, path)
		}
		return refusal, true
	}
	a.raw = address{path: there.link()}.encode()
	return a.connectSocket()
}

func (m *Mediator) report(call *notify.Call, target string) {
	if m.OnRefused != nil {
		m.OnRefused(call, target)
	}
}

// connectAbstract connects to an abstract name. There is no inode to hold, so
// the name may get another owner between the decision and the connection. It is
// checked again afterwards, and a connection that may have gone elsewhere is
// shut down before the caller gets the answer.
func (m *Mediator) connectAbstract(a *attempt, to address) (errno unix.Errno, answer bool) {
	if refusal := m.mayReachAbstract(a.fd, to.abstract); refusal != 0 {
		if refusal == canary.RefusedAbstract {
			m.report(a.call, "abstract:"+to.abstract)
		}
		return refusal, true
	}
	a.raw = to.encode()
	errno, answer = a.connectSocket()
	if errno == 0 && answer {
		if refusal := m.mayReachAbstract(a.fd, to.abstract); refusal != 0 {
			_ = unix.Shutdown(a.fd, unix.SHUT_RDWR)
			return refusal, true
		}
	}
	return errno, answer
}

// translate turns an error into the kernel's answer. If the caller's memory or
// descriptors cannot be read, nothing can be decided: the answer is EACCES.
func translate(err error) unix.Errno {
	var errno unix.Errno
	if !errors.As(err, &errno) || errno == unix.EPERM || errno == unix.ESRCH {
		return unix.EACCES
	}
	return errno
}
