package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Available says why system calls cannot be filtered here, in words a
// user can act on, or nil. It asks for the one action that came last of those
// used (Linux 4.14).
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
		return errors.New("filters of system calls are not built into this kernel, or a filter hides them")
	}
	return fmt.Errorf("ask for filters of system calls: %w", errno)
}

// filters are the programs that were made, as bytes, by Filtering: there are
// few, and the stage would take a tenth of its time for one.
var filters sync.Map

// ForThisMachine is the filter for this machine, as Program.bytes.
func ForThisMachine(filtering Filtering) ([]byte, error) {
	if made, known := filters.Load(filtering); known {
		return made.([]byte), nil
	}
	program, err := Filter(runtime.GOARCH, filtering)
	if err != nil {
		return nil, err
	}
	made := program.bytes()
	filters.Store(filtering, made)
	return made, nil
}

// Install puts the filter in force on the calling thread for good. The
// thread must be locked, and must have no_new_privs set. It returns the
// listener for a supervisor, or -1 where the filter needs none.
func Install(code []byte, filtering Filtering) (listener int, err error) {
	program, err := programOf(code)
	if err != nil {
		return -1, err
	}
	// SPEC_ALLOW, because before 5.16 every filtered process was slowed down by
	// the mitigation of a leak inside one process, which no session is
	// protected from.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	if filtering.Supervised() {
		// A call that was carried out must not begin anew because a signal came
		// before its answer, and one that is only looked at must not fail with
		// EINTR where it never does.
		flags |= unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	return loadProgram(program, flags)
}

// InstallTruncation is Install for the filter that stands in for
// Landlock's eye on truncation. It proves it too: the canary has an empty path,
// which a kernel does not find.
func InstallTruncation() error {
	program, err := TruncationFilter(runtime.GOARCH)
	if err != nil {
		return err
	}
	return loadAndProve(program, "truncate", unix.EACCES, func() error { return unix.Truncate("", 0) })
}

// InstallIPC is Install for the filter that stands in for an IPC
// namespace. Its canary is no segment's number.
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
	// Not TSYNC: execve carries over this thread's filter alone, and the
	// runtime's other threads end with it.
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
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
// with a listener if one is asked for. The thread must be locked and thrown
// away afterwards. Only trying shows whether a listener is possible: a process
// can have one alone, and some container engines take it.
func TryInstall(flags uintptr) error {
	fd, err := loadProgram(Program{{Code: bpfReturn, K: uint32(actionAllow)}}, flags)
	if err == nil && fd >= 0 {
		unix.Close(fd)
	}
	return err
}

// filterCanaries are calls that the filter answers otherwise than any kernel
// would, whatever it is built with, and that do nothing in either case.
var filterCanaries = []struct {
	name    string
	number  uintptr
	args    [3]uintptr
	answer  unix.Errno
	offline bool // only without network
}{
	// A kernel finds the size of 0 invalid.
	{name: "clone3", number: unix.SYS_CLONE3, answer: unix.ENOSYS},
	// A kernel finds the descriptor bad.
	{name: "ioctl TIOCSTI", number: unix.SYS_IOCTL, args: [3]uintptr{^uintptr(0), unix.TIOCSTI}, answer: unix.EPERM},
	{name: "pidfd_getfd", number: unix.SYS_PIDFD_GETFD, args: [3]uintptr{^uintptr(0), ^uintptr(0)}, answer: unix.EPERM},
	// A kernel finds the flag invalid. It is the highest bit.
	{name: "unshare", number: unix.SYS_UNSHARE, args: [3]uintptr{^(^uintptr(0) >> 1)}, answer: unix.EPERM},
	// A kernel has no such protocol.
	{name: "socket AF_UNSPEC", number: unix.SYS_SOCKET, args: [3]uintptr{unix.AF_UNSPEC, unix.SOCK_STREAM},
		answer: unix.EACCES, offline: true},
}

// Prove makes sure that the filter answers.
func Prove(filtering Filtering) error {
	for _, canary := range filterCanaries {
		if canary.offline && (!filtering.Offline || filtering.Observed != ObservedNone) {
			continue // or ProveOffline does it, once somebody answers
		}
		_, _, errno := unix.RawSyscall(canary.number, canary.args[0], canary.args[1], canary.args[2])
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

// ProveOffline makes sure that no network socket can be made.
func ProveOffline() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return errors.New("a network socket can still be made although the kernel took the filter: the network is not off")
	}
	if !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("make a network socket after filtering: expected a refusal: %w", err)
	}
	return nil
}

// proveNoDatagrams makes sure that no Unix socket can be made past the
// supervisor.
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
