package notifytest

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Caller is a thread with a filter that sends some system calls to a listener.
type Caller struct {
	// Listener is where the calls arrive.
	Listener *os.File
	// TID is the thread.
	TID int

	work chan func()
	done chan struct{}
}

// NewCaller starts a thread whose given calls, by their native numbers, are
// sent to the listener. The test must close the listener before it ends. If the
// machine cannot do it, NewCaller calls skip.
func NewCaller(t testing.TB, skip func(reason string), calls ...int) *Caller {
	t.Helper()
	c := &Caller{work: make(chan func()), done: make(chan struct{})}
	ready := make(chan error)
	go func() {
		defer close(c.done)
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		c.TID = unix.Gettid()
		fd, err := -1, withoutPreemption()
		if err == nil {
			fd, err = listen(calls)
		}
		if err == nil {
			c.Listener = os.NewFile(uintptr(fd), "listener")
		}
		ready <- err
		for do := range c.work {
			do()
		}
	}()
	err := <-ready
	t.Cleanup(func() {
		close(c.work)
		<-c.done
	})
	if err != nil {
		skip(err.Error())
	}
	return c
}

// Do runs do on the thread and waits for it. do must use unix.Syscall, not
// RawSyscall, so that the scheduler can run the supervisor.
func (c *Caller) Do(do func()) { <-c.Go(do) }

// Go runs do on the thread; the channel is closed when it is done.
func (c *Caller) Go(do func()) <-chan struct{} {
	done := make(chan struct{})
	c.work <- func() {
		defer close(done)
		do()
	}
	return done
}

// withoutPreemption blocks SIGURG for the calling thread. Go's scheduler sends
// it, and a call would count as interrupted.
func withoutPreemption() error {
	var set unix.Sigset_t
	set.Val[0] = 1 << (unix.SIGURG - 1)
	return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
}

// listen installs the filter on the calling thread and returns the listener.
func listen(calls []int) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	const load, jumpEqual, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_RET | unix.BPF_K
	code := []unix.SockFilter{{Code: load, K: 0}} // the number
	for i, call := range calls {
		code = append(code, unix.SockFilter{Code: jumpEqual, Jt: uint8(len(calls) - i), K: uint32(call)})
	}
	const allow, notify = 0x7fff0000, 0x7fc00000 // SECCOMP_RET_*
	code = append(code, unix.SockFilter{Code: give, K: allow}, unix.SockFilter{Code: give, K: notify})
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}
