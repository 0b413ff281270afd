package sockets

import (
	"errors"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/canary"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Mediator decides for one session. Its handlers may be called from several
// goroutines.
type Mediator struct {
	// OnRefused, if not nil, is called for each denied connection to a socket
	// of an outside process. target is the socket's real path, or "abstract:"
	// and its name. Set it before the first call. It must not answer the call.
	OnRefused func(call *notify.Call, target string)
	// Internet, if not nil, decides about internet sockets. Otherwise all may
	// connect. Set it before the first call.
	Internet ConnectInternet
	// Datagrams, if not nil, knows sockets that replace others. Set it before
	// the first call.
	Datagrams Datagrams

	grants Grants
	pinned []*socketFile
	// session lists the sockets of the session's network namespace. host lists
	// those of ours, and is nil if that is the same namespace.
	session, host *diag
	bound         cookies
	sockets       locks
}

// New returns a mediator. own comes from canary.OpenDiag in the session's network
// namespace, and is nil if that is ours. New takes ownership of own, also on an
// error. It fails if sockets cannot be listed here (CONFIG_UNIX_DIAG).
func New(grants Grants, own *os.File) (*Mediator, error) {
	m := &Mediator{grants: grants}
	if own != nil {
		m.session = &diag{file: own}
	}
	ours, err := openDiag()
	if err != nil {
		m.Close()
		return nil, err
	}
	if own == nil {
		m.session = ours
	} else {
		m.host = ours
	}
	if _, err := m.session.list(listening); err != nil {
		m.Close()
		return nil, err
	}
	for _, path := range grants.Pinned {
		if there, err := pin(path); err == nil { // otherwise CheckPinned returns the reason
			m.pinned = append(m.pinned, there)
		}
	}
	return m, nil
}

// Close releases the mediator's descriptors. No handler may be called any more.
func (m *Mediator) Close() {
	for _, p := range m.pinned {
		p.close()
	}
	m.session.close()
	m.host.close()
}

// Bind answers bind(2): it records the socket as the session's own and lets the
// call continue. It records the socket, not the address, so it does not matter
// if the caller changes its arguments meanwhile. Landlock decides what the
// caller may create.
func (m *Mediator) Bind(call *notify.Call) {
	if m.bindsDatagrams(call) {
		call.Succeed()
		return
	}
	if cookie, ok := m.unbound(call); ok {
		m.bound.add(cookie, m.session)
	}
	call.Continue()
}

// unbound returns the cookie of the caller's socket if it is a Unix socket
// without an address. A socket with an address was bound elsewhere: it was
// passed to the session, and an outside process may share it.
func (m *Mediator) unbound(call *notify.Call) (cookie uint64, ok bool) {
	fd, err := call.Descriptor(int(int32(call.Args[0])))
	if err != nil {
		return 0, false
	}
	defer unix.Close(fd)
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_UNIX {
		return 0, false
	}
	if length, err := addressLength(fd); err != nil || length > pathOffset {
		return 0, false
	}
	cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return cookie, err == nil && call.Valid()
}

// addressLength returns the length of a socket's own address. For an unbound
// Unix socket that is the length of the family alone.
func addressLength(fd int) (uint32, error) {
	var raw [storageLength]byte
	length := uint32(len(raw))
	_, _, errno := unix.RawSyscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&raw[0])),
		uintptr(unsafe.Pointer(&length)))
	if errno != 0 {
		return 0, errno
	}
	return length, nil
}

// refusedPath is the answer to a denied connection to a path, the same as
// Landlock's.
const refusedPath = unix.EACCES

// mayReach decides about a socket file: 0 allows, anything else is the answer.
func (m *Mediator) mayReach(p *socketFile, tid int) unix.Errno {
	if len(m.grants.Paths) > 0 {
		if path, err := p.path(); err == nil && slices.Contains(m.grants.Paths, path) {
			return 0
		}
	}
	if slices.ContainsFunc(m.pinned, p.same) {
		return 0
	}
	if !p.isSocket() {
		return unix.ECONNREFUSED
	}
	inode, err := p.kernelInode()
	if err != nil {
		return refusedPath
	}
	return m.decide(refusedPath, func(s listed) bool {
		return s.inode == inode && p.onDevice(tid, s.device)
	}, m.session, m.host)
}

// decide checks every listener at an address. Inode numbers are not unique:
// sock_diag truncates them, and btrfs subvolumes reuse them. So it is not
// enough if one listener is the session's own: all must be. If there is no
// listener, the address is stale or belongs to a network namespace that we
// cannot list. Then the answer is ECONNREFUSED, as for a stale one, which
// programs remove.
func (m *Mediator) decide(refused unix.Errno, matches func(listed) bool, namespaces ...*diag) unix.Errno {
	answer := unix.ECONNREFUSED
	for _, namespace := range namespaces {
		if namespace == nil {
			continue
		}
		all, err := namespace.list(listening)
		if err != nil {
			return refused
		}
		for _, s := range all {
			switch {
			case !matches(s):
			case !m.bound.has(s.cookie):
				return refused
			default:
				answer = 0
			}
		}
	}
	return answer
}

// mayReachAbstract decides about an abstract name. The kernel looks it up in
// the network namespace of the socket, so a socket from another namespace is
// denied.
func (m *Mediator) mayReachAbstract(fd int, name string) unix.Errno {
	if name == canary.AbstractName {
		return canary.RefusedAbstract
	}
	if slices.Contains(m.grants.Abstract, name) {
		return 0
	}
	if m.host != nil && !m.sameNamespace(fd) {
		return canary.RefusedAbstract
	}
	return m.decide(canary.RefusedAbstract, func(s listed) bool { return s.name == "\x00"+name }, m.session)
}

// sameNamespace reports whether a socket is in the network namespace whose
// sockets are listed as the session's.
func (m *Mediator) sameNamespace(fd int) bool {
	theirs, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return false
	}
	raw, err := m.session.file.SyscallConn()
	if err != nil {
		return false
	}
	var ours uint64
	var failed error
	err = raw.Control(func(diag uintptr) {
		ours, failed = unix.GetsockoptUint64(int(diag), unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	})
	return errors.Join(err, failed) == nil && ours == theirs
}
