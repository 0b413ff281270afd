package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available returns nil if this machine can filter system calls. Otherwise the
// error says why not, in words that a user can act on. It asks the kernel for
// SECCOMP_RET_KILL_PROCESS, the newest action that filters use except
// SECCOMP_RET_USER_NOTIF (Linux 4.14).
func Available() error {
	if _, err := machineOf(runtime.GOARCH); err != nil {
		return err
	}
	kill := uint32(actionKill)
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&kill)))
	switch errno {
	case 0:
		return nil
	case unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP:
		return errors.New("this kernel cannot filter system calls, or a filter of this process forbids it")
	}
	return fmt.Errorf("ask the kernel whether it filters system calls: %w", errno)
}

// encoded caches encoded programs by Filtering. There are few, and making one
// would take a tenth of the stage's time.
var encoded sync.Map

// ForThisMachine returns the encoded filter for this machine; see Install. It
// may be called from several goroutines.
func ForThisMachine(filtering Filtering) ([]byte, error) {
	if code, known := encoded.Load(filtering); known {
		return code.([]byte), nil
	}
	program, err := Filter(runtime.GOARCH, filtering)
	if err != nil {
		return nil, err
	}
	code := program.bytes()
	encoded.Store(filtering, code)
	return code, nil
}

// Install puts a filter of ForThisMachine in force on the calling thread, for
// good. The thread must be locked and must have no_new_privs set. It returns
// the listener for the supervisor, or -1 if the filter needs none.
func Install(code []byte, filtering Filtering) (listener int, err error) {
	program, err := programOf(code)
	if err != nil {
		return -1, err
	}
	// SPEC_ALLOW, because kernels before 5.16 otherwise slow down every
	// filtered process, to mitigate a leak between threads of one process. A
	// session needs no protection from itself.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	if filtering.Supervised() {
		// Without WAIT_KILLABLE_RECV a signal would interrupt a waiting call:
		// one that the supervisor has carried out would be repeated, and one
		// that never fails with EINTR would fail so.
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	return loadProgram(program, flags)
}

// InstallTruncation installs the TruncationFilter, as Install does, and proves
// it. Its canary is an empty path, for which the kernel would answer ENOENT.
func InstallTruncation() error {
	program, err := TruncationFilter(runtime.GOARCH)
	if err != nil {
		return err
	}
	return loadAndProve(program, "truncate", unix.EACCES, func() error { return unix.Truncate("", 0) })
}

// InstallIPC installs the IPCFilter, as Install does, and proves it. Its canary
// is an id that no segment has.
func InstallIPC() error {
	program, err := IPCFilter(runtime.GOARCH)
	if err != nil {
		return err
	}
	return loadAndProve(program, "shmat", unix.ENOSYS, func() error {
		_, _, errno := unix.RawSyscall(unix.SYS_SHMAT, ^uintptr(0), 0, 0)
		return errno
	})
}

func loadAndProve(program Program, call string, answer unix.Errno, canary func() error) error {
	if _, err := loadProgram(program, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW); err != nil {
		return err
	}
	if err := canary(); !errors.Is(err, answer) {
		return fmt.Errorf("call %s after filtering: expected %s: got %w: the filter has no effect", call,
			unix.ErrnoName(answer), err)
	}
	return nil
}

func loadProgram(program Program, flags uintptr) (listener int, err error) {
	code := make([]unix.SockFilter, len(program))
	for i, in := range program {
		code[i] = unix.SockFilter{Code: in.Code, Jt: in.JT, Jf: in.JF, K: in.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// No TSYNC: execve keeps the filter of this thread, and the other threads
	// of the Go runtime end with it.
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(code)
	switch {
	case errno != 0:
		return -1, fmt.Errorf("install filter of system calls: %w", errno)
	case flags&unix.SECCOMP_FILTER_FLAG_NEW_LISTENER == 0:
		return -1, nil
	}
	return int(fd), nil
}

// TryInstall installs a filter that allows every call on the calling thread,
// with the given SECCOMP_FILTER_FLAG_* flags. The thread must be locked, and
// must not be used afterwards. Only trying shows whether a listener is
// possible: a process can have only one, and some container engines have it.
func TryInstall(flags uintptr) error {
	fd, err := loadProgram(Program{{Code: bpfReturn, K: uint32(actionAllow)}}, flags)
	if err == nil && fd >= 0 {
		unix.Close(fd)
	}
	return err
}

type filterCanary struct {
	name    string
	number  uintptr
	args    [4]uintptr
	answer  unix.Errno
	offline bool // for a session without network
	shared  bool // for one that reaches hosts in the machine's network
	local   bool // for one that reaches only some services of this machine
}

// appliesTo reports whether a filter answers the canary.
func (c filterCanary) appliesTo(f Filtering) bool {
	switch {
	case c.offline: // if observed, ProveOffline tests it once the supervisor answers
		return f.Offline && f.Observed == ObservedNone
	case c.shared || c.local:
		return c.shared && f.Shared || c.local && f.Localhost
	}
	return true
}

// filterCanaries are calls that do nothing with or without the filter, and that
// the filter answers with another error than any kernel does.
var filterCanaries = []filterCanary{
	// A kernel answers EINVAL, for the size of 0.
	{name: "clone3", number: unix.SYS_CLONE3, answer: unix.ENOSYS},
	// A kernel answers EBADF.
	{name: "ioctl TIOCSTI", number: unix.SYS_IOCTL, args: [4]uintptr{^uintptr(0), unix.TIOCSTI}, answer: unix.EPERM},
	{name: "pidfd_getfd", number: unix.SYS_PIDFD_GETFD, args: [4]uintptr{^uintptr(0), ^uintptr(0)}, answer: unix.EPERM},
	// A kernel answers EINVAL: it has no flag in the highest bit.
	{name: "unshare", number: unix.SYS_UNSHARE, args: [4]uintptr{^(^uintptr(0) >> 1)}, answer: unix.EPERM},
	// A kernel answers EAFNOSUPPORT.
	{
		name: "socket AF_UNSPEC", number: unix.SYS_SOCKET, args: [4]uintptr{unix.AF_UNSPEC, unix.SOCK_STREAM},
		answer: unix.EACCES, offline: true,
	},
	// A kernel answers EBADF.
	{
		name: "sendto MSG_FASTOPEN", number: unix.SYS_SENDTO, args: [4]uintptr{^uintptr(0), 0, 0, unix.MSG_FASTOPEN},
		answer: unix.EOPNOTSUPP, shared: true, local: true,
	},
	{
		name: "sendmsg MSG_FASTOPEN", number: unix.SYS_SENDMSG, args: [4]uintptr{^uintptr(0), 0, unix.MSG_FASTOPEN},
		answer: unix.EOPNOTSUPP, shared: true, local: true,
	},
	{
		name: "setsockopt TCP_FASTOPEN_CONNECT", number: unix.SYS_SETSOCKOPT,
		args: [4]uintptr{^uintptr(0), unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, answer: unix.EOPNOTSUPP,
		local: true,
	},
	{
		name: "setsockopt IP_OPTIONS", number: unix.SYS_SETSOCKOPT,
		args: [4]uintptr{^uintptr(0), unix.IPPROTO_IP, unix.IP_OPTIONS}, answer: unix.EPERM, shared: true,
	},
	{
		name: "setsockopt IPV6_RTHDR", number: unix.SYS_SETSOCKOPT,
		args: [4]uintptr{^uintptr(0), unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, answer: unix.EPERM, shared: true,
	},
	{
		name: "setsockopt SO_BINDTODEVICE", number: unix.SYS_SETSOCKOPT,
		args: [4]uintptr{^uintptr(0), unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, answer: unix.EPERM, shared: true,
	},
}

// Prove returns an error unless the filter is in force on the calling thread.
func Prove(filtering Filtering) error {
	for _, canary := range filterCanaries {
		if !canary.appliesTo(filtering) {
			continue
		}
		_, _, errno := unix.RawSyscall6(canary.number, canary.args[0], canary.args[1], canary.args[2],
			canary.args[3], 0, 0)
		if errno != canary.answer {
			return fmt.Errorf("call %s after filtering: expected %s: got %s: the filter has no effect",
				canary.name, unix.ErrnoName(canary.answer), errnoText(errno))
		}
	}
	if filtering.Sockets {
		if err := proveNoDatagrams(); err != nil {
			return err
		}
	}
	if !filtering.Offline || filtering.Observed != ObservedNone {
		return nil
	}
	return ProveOffline()
}

// ProveOffline returns an error unless network sockets are refused.
func ProveOffline() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err == nil {
		unix.Close(fd)
		return errors.New("a network socket can still be made although the kernel took the filter: the " +
			"network is not off")
	}
	if !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("make a network socket after filtering: expected a refusal: %w", err)
	}
	return nil
}

// InSession reports whether a session's filter is in force on the calling
// thread. No program outside of a session can be made to look so: no kernel
// answers a lease on no file (fcntl(2), EBADF) with EACCES, and no other filter
// that is known does.
func InSession() bool {
	_, _, lease := unix.RawSyscall(unix.SYS_FCNTL, ^uintptr(0), unix.F_SETLEASE, 0)
	return lease == unix.EACCES && Prove(Filtering{}) == nil
}

// proveNoDatagrams returns an error unless Unix sockets are refused that would
// bypass the supervisor.
func proveNoDatagrams() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	if !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("make a datagram socket after filtering: expected a refusal: got %w", err)
	}
	return nil
}

func errnoText(errno unix.Errno) string {
	if errno == 0 {
		return "success"
	}
	return unix.ErrnoName(errno)
}
