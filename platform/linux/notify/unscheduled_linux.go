package notify

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Functions in this file and those named Decide run while their thread is in a
// system call as far as the runtime knows. So the garbage collector and the
// scheduler do not wait for it, and it needs no processor of the runtime. Such
// a function must be nosplit and norace, and call only such functions. It must
// not allocate, and not store pointers. Together they may use some 500 bytes of
// stack: the linker checks that only as far as it knows whom they call. Atomic
// functions are forbidden too, because the race detector needs a processor.

// The runtime declares these two for other packages, because gVisor uses them
// (go.dev/issue/67401). Package syscall does the same around each system call.
//
//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// Notification is struct seccomp_notif with struct seccomp_data in it
// (linux/seccomp.h).
type Notification struct {
	ID     uint64
	TID    uint32
	_      uint32
	Number int32
	Arch   uint32
	_      uint64
	Args   [6]uint64
}

// Decider answers calls without Go's scheduler.
type Decider interface {
	// Begin is called before a series of calls to Decide, and End after it, on
	// the same goroutine. Between the two the decider may use more memory than
	// hundreds of idle sessions should.
	Begin()
	End()
	// Decide reports whether a call continues at once. It may block. The
	// package's rules for such functions are in unscheduled_linux.go.
	Decide(n *Notification) bool
}

// maxSize bounds the kernel's structures, which may grow.
const maxSize = 512

// receiver receives the calls of one listener. It is used by one goroutine, and
// lies on the heap, so that its addresses do not change.
type receiver struct {
	listener uintptr
	decider  Decider
	stop     *uint32 // not 0: return soon
	polled   [1]unix.PollFd
	limit    unix.Timespec
	errno    unix.Errno
	buffer   [maxSize]byte
	answer   [maxSize]byte
}

// receivers are for sessions that wait for a call at the moment: idle ones need
// none.
var receivers = sync.Pool{New: func() any { return &receiver{} }}

// receive waits for a call that Go must answer, for at most so long after the
// last call. It answers all others, or so many of them; 0: all.
func (r *receiver) receive(timeout time.Duration, calls int) (event, request, unix.Errno) {
	found := r.loop(int64(timeout), calls)
	runtime.KeepAlive(r)
	if found != eventCall {
		return found, request{}, r.errno
	}
	return found, *(*request)(unsafe.Pointer(&r.buffer)), 0
}

// loop has the order of calls for this reason: SECCOMP_IOCTL_NOTIF_RECV has no
// timeout, and before Linux 6.11 it sleeps forever once the last process with
// the filter is gone. So poll(2) goes first; since Linux 5.9 it reports that
// case too.
//
//go:nosplit
//go:norace
func (r *receiver) loop(timeout int64, calls int) event {
	entersyscallblock()
	found := r.step(timeout)
	for answered := 1; found == eventAnswered && answered != calls; answered++ {
		found = r.step(timeout)
	}
	exitsyscall()
	return found
}

// step waits for one call, and answers it if it can.
//
//go:nosplit
//go:norace
func (r *receiver) step(timeout int64) event {
	r.errno = 0
	if *r.stop != 0 {
		return eventNone
	}
	r.limit.Sec, r.limit.Nsec = 0, timeout // the kernel changes it
	r.polled[0].Fd, r.polled[0].Events, r.polled[0].Revents = int32(r.listener), unix.POLLIN, 0
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&r.polled)), 1,
		uintptr(unsafe.Pointer(&r.limit)), 0, 0, 0)
	switch {
	case errno == unix.EINTR:
		return eventAnswered
	case errno != 0:
		r.errno = errno
		return eventNone
	case n == 0:
		return eventNone
	case r.polled[0].Revents&unix.POLLIN == 0:
		return eventUnused
	}
	for i := range r.buffer { // the kernel refuses a buffer that is not zero
		r.buffer[i] = 0
	}
	_, _, errno = unix.RawSyscall6(unix.SYS_IOCTL, r.listener, unix.SECCOMP_IOCTL_NOTIF_RECV,
		uintptr(unsafe.Pointer(&r.buffer)), 0, 0, 0)
	switch errno {
	case 0:
	case unix.EINTR, unix.ENOENT: // ENOENT: the caller was killed, or interrupted, since poll
		return eventAnswered
	default:
		r.errno = errno
		return eventNone
	}
	call := (*Notification)(unsafe.Pointer(&r.buffer))
	if r.decider == nil || !r.decider.Decide(call) {
		return eventCall
	}
	response := (*response)(unsafe.Pointer(&r.answer))
	response.id, response.val, response.errno, response.flags = call.ID, 0, 0, continueCall
	for {
		_, _, errno = unix.RawSyscall6(unix.SYS_IOCTL, r.listener, unix.SECCOMP_IOCTL_NOTIF_SEND,
			uintptr(unsafe.Pointer(&r.answer)), 0, 0, 0)
		if errno != unix.EINTR {
			return eventAnswered // it is no error if the caller is gone
		}
	}
}
