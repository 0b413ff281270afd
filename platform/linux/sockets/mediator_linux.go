package sockets

import (
	"errors"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Mediator decides for one session. Its handlers may be called from several
// goroutines.
type Mediator struct {
	// OnRefused, where it is not nil, is told of each connection that is
	// refused to a socket of somebody else: its real path, or "abstract:" and
	// its name. It is set before the first call and must not answer the call.
	OnRefused func(call *notify.Call, target string)

	grants Grants
	pinned []*socketFile
	// session lists the sockets of the session's network namespace, and host
	// those of ours, where that is another; nil where not.
	session, host *diag
	bound         cookies
	sockets       locks
}

// New makes a mediator. own is what OpenDiag made in the session's network
// namespace where that is not ours, and nil where it is; it is taken over in
// any case. The error says that sockets cannot be listed here
// (CONFIG_UNIX_DIAG).
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
		if there, err := pin(path); err == nil { // CheckPinned has told the reason otherwise
			m.pinned = append(m.pinned, there)
		}
	}
	return m, nil
}

// Close gives back what the mediator holds. No handler may be called any more.
func (m *Mediator) Close() {
	for _, p := range m.pinned {
		p.close()
	}
	m.session.close()
	m.host.close()
}

// Bind answers bind(2): the socket is noted as one of the session's own, and
// the call goes on. It is the socket that is noted, not the address, so that it
// does not matter what the caller makes of its arguments meanwhile; what it may
// create is Landlock's to say.
func (m *Mediator) Bind(call *notify.Call) {
	if cookie, ok := m.unbound(call); ok {
		m.bound.add(cookie, m.session)
	}
	call.Continue()
}

// unbound identifies the caller's socket where it is a Unix socket that may be
// connected to and has no address yet. One that has an address got it
// elsewhere: it was handed to the session, and whoever else has it is outside.
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

// addressLength is the length of a socket's own address, which for a Unix
// socket without one is that of the family alone.
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

// The kernel's answers to a connect(2) that is refused: those that Landlock
// gives.
const (
	refusedPath     = unix.EACCES
	refusedAbstract = unix.EPERM
)

// mayReach decides about a place: 0 allows, anything else is the answer.
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

// decide looks at all who listen at an address. Numbers of inodes are not as
// unique as they should be: sock_diag cuts them, and subvolumes have the same
// ones. So it is not enough that one of those is the session's own; none may be
// anybody else's. Where nobody listens the address is stale, or belongs to a
// network namespace that we cannot look into: it is not connected to, and the
// answer is that for a stale one, after which programs clear it away.
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

// mayReachAbstract decides about an abstract name, which is looked up in the
// network namespace of the socket: one from elsewhere is refused.
func (m *Mediator) mayReachAbstract(fd int, name string) unix.Errno {
	if name == canaryName {
		return refusedAbstract
	}
	if slices.Contains(m.grants.Abstract, name) {
		return 0
	}
	if m.host != nil && !m.sameNamespace(fd) {
		return refusedAbstract
	}
	return m.decide(refusedAbstract, func(s listed) bool { return s.name == "\x00"+name }, m.session)
}

// sameNamespace compares the network namespaces of a socket and of what lists
// the session's sockets.
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
