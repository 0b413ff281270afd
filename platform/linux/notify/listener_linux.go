package notify

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// request is struct seccomp_notif with struct seccomp_data in it
// (linux/seccomp.h).
type request struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id      uint64
	flags   uint32
	from    uint32
	to      uint32
	fdFlags uint32
}

// sizes is struct seccomp_notif_sizes. A newer kernel may have longer
// structures than those above, and writes as many bytes as its own have.
type sizes struct{ request, response, data uint16 }

func kernelSizes() (sizes, error) {
	var s sizes
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&s)))
	if errno != 0 {
		return sizes{}, fmt.Errorf("ask for the size of notifications: %w", errno)
	}
	s.request = max(s.request, uint16(unsafe.Sizeof(request{})))
	s.response = max(s.response, uint16(unsafe.Sizeof(response{})))
	return s, nil
}

// setSyncWakeup makes the kernel switch to the supervisor directly
// (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6), if it can. Calls are
// answered sooner. It also protects callers: a call can be interrupted until
// its notification is received, even one that is never interrupted otherwise.
func setSyncWakeup(fd int) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// event is what a poll of a listener has found.
type event int

const (
	eventNone event = iota
	eventCall
	eventUnused   // no process uses the filter any more
	eventAnswered // a call that needs nothing more, or nothing at all
)

// respond sends an answer. It is no error if the caller is gone or was
// interrupted.
func respond(fd int, size uint16, answer response) error {
	buffer := make([]byte, size)
	*(*response)(unsafe.Pointer(&buffer[0])) = answer
	for {
		switch errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&buffer[0])); errno {
		case 0, unix.ENOENT:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("answer notification: %w", errno)
		}
	}
}

// sendFD sends a descriptor to the caller, as the answer to its call. No signal
// may interrupt that, not even those of the Go scheduler: the kernel then takes
// the descriptor back, but has the answer already, which is 0. The caller would
// take its standard input for what it has opened.
func sendFD(fd int, a addFD) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return fmt.Errorf("send a descriptor to the caller: %w", err)
	}
	defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	return sendInterruptibly(fd, a)
}

func sendInterruptibly(fd int, a addFD) error {
	for {
		switch errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a)); errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("send a descriptor to the caller: %w", errno)
		}
	}
}

// valid reports whether a call still waits for its answer. If so, what was read
// before through the caller's number concerns that caller and not a later
// process with the same number.
func valid(fd int, id uint64) bool {
	for {
		switch ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) {
		case 0:
			return true
		case unix.EINTR:
		default:
			return false
		}
	}
}

func ioctl(fd int, command uintptr, argument unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), command, uintptr(argument))
	return errno
}
