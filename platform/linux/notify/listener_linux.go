package notify

import (
	"errors"
	"fmt"
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

// setSyncWakeup lets the kernel hand the processor over to whoever waits for the
// listener, where it can (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6). Every
// call is answered sooner, and what is more: a caller is protected from being
// interrupted, with calls that never are otherwise, from the moment on when its
// notification is received.
func setSyncWakeup(fd int) {
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// arrival is what a look at a listener has found.
type event int

const (
	eventNone event = iota
	eventCall
	eventUnused // no process uses the filter any more
)

// receive takes a notification if there is one; it does not wait.
// SECCOMP_IOCTL_NOTIF_RECV itself knows no O_NONBLOCK, and before Linux 6.11 it
// sleeps for ever once the last process with the filter is gone: poll(2) goes
// first. Since Linux 5.9 it tells that too.
func receive(fd int, buffer []byte) (event, request, error) {
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return eventNone, request{}, fmt.Errorf("look for notifications: %w", err)
		case n == 0 || polled[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0:
			return eventNone, request{}, nil
		case polled[0].Revents&unix.POLLIN == 0:
			return eventUnused, request{}, nil
		}
		clear(buffer) // the kernel refuses a buffer that is not zero
		switch errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&buffer[0])); errno {
		case 0:
			return eventCall, *(*request)(unsafe.Pointer(&buffer[0])), nil
		case unix.EINTR, unix.ENOENT: // ENOENT: the caller was killed, or interrupted, since poll
		default:
			return eventNone, request{}, fmt.Errorf("receive notification: %w", errno)
		}
	}
}

// respond answers. A caller that is gone, or was interrupted, needs no answer,
// which is no error.
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

// sendFD hands a descriptor over as the answer to a call.
func sendFD(fd int, a addFD) error {
	for {
		switch errno := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a)); errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("hand a descriptor over: %w", errno)
		}
	}
}

// valid reports whether a caller still waits for its answer. What was found out
// about its process by number before is then true of it, and not of another
// that got the number later.
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
