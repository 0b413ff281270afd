package notify_test

import (
	"errors"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify/notifytest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

const timeout = 30 * time.Second

// auditArch is this machine's architecture (linux/audit.h).
var auditArch = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}[runtime.GOARCH]

func key(number int) notify.Key { return notify.Key{Arch: auditArch, Number: number} }

func newCaller(t *testing.T, calls ...int) *notifytest.Caller {
	t.Helper()
	return notifytest.NewCaller(t, func(reason string) { harness.Skip(t, "user_notification", reason) }, calls...)
}

func supervise(t *testing.T, c *notifytest.Caller, handlers map[notify.Key]notify.Handler) *notify.Session {
	t.Helper()
	session, err := notify.Supervise(c.Listener, handlers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	})
	return session
}

// prctl makes the one call that these tests supervise. The kernel itself would
// reject its arguments.
func prctl(args ...uintptr) unix.Errno {
	var all [5]uintptr
	copy(all[:], args)
	_, _, errno := unix.Syscall6(unix.SYS_PRCTL, all[0], all[1], all[2], all[3], all[4], 0)
	return errno
}

const unknownOption = 0x7fffffff // EINVAL

func TestSession_Answers(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL, unix.SYS_GETPPID)
	text := []byte("the caller's text")
	type utterance struct {
		text string
		tid  int
	}
	heard := make(chan utterance, 1)
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {Handle: func(call *notify.Call) {
		switch call.Args[1] {
		case 1:
			call.Succeed()
		case 2:
			call.Fail(unix.EXDEV)
		case 3:
			buffer := make([]byte, call.Args[3])
			if err := call.Read(call.Args[2], buffer); err != nil {
				t.Error(err)
			}
			heard <- utterance{string(buffer), call.TID}
			call.Continue()
		case 4:
			err := call.Read(8, make([]byte, 16))
			if !errors.Is(err, unix.EFAULT) {
				t.Errorf("read at a bad address: %v", err)
			}
			if _, err := call.Descriptor(-1); !errors.Is(err, unix.EBADF) {
				t.Errorf("duplicate a bad descriptor: %v", err)
			}
			if !call.Valid() {
				t.Error("Valid says that the caller is gone")
			}
			call.Fail(unix.EBADF)
		}
	}}})
	for what, want := range map[uintptr]unix.Errno{1: 0, 2: unix.EXDEV, 3: unix.EINVAL, 4: unix.EBADF} {
		c.Do(func() {
			if got := prctl(unknownOption, what, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text))); got != want {
				t.Errorf("answer to %d is %v, want %v", what, got, want)
			}
		})
	}
	if got, want := <-heard, (utterance{string(text), c.TID}); got != want {
		t.Errorf("heard %+v, want %+v", got, want)
	}
	c.Do(func() {
		if _, _, errno := unix.Syscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.ENOSYS {
			t.Errorf("a call without a handler is answered with %v", errno)
		}
	})
}

func TestSession_FailsClosed(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	arrived := make(chan struct{})
	session := supervise(t, c, map[notify.Key]notify.Handler{key(
		unix.SYS_PRCTL): {Handle: func(*notify.Call) { close(arrived) }}})
	done := c.Go(func() {
		if got := prctl(unknownOption); got != unix.ENOSYS {
			t.Errorf("a call that was waiting is answered with %v", got)
		}
	})
	<-arrived
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	c.Do(func() {
		if got := prctl(unknownOption); got != unix.ENOSYS {
			t.Errorf("a later call is answered with %v", got)
		}
	})
	if err := session.Close(); err != nil {
		t.Errorf("close twice: %v", err)
	}
}

// A session waits for a call in two ways, one after the other. Neither may miss
// a call, or hold up the garbage collector.
func TestSession_AnswersWhateverTheTimeBetweenCalls(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {
		Quick: true, Handle: func(call *notify.Call) { call.Fail(unix.EXDEV) },
	}})
	for _, pause := range []time.Duration{
		0, time.Millisecond, 9 * time.Millisecond, 10 * time.Millisecond, 11 * time.Millisecond, 50 * time.Millisecond,
	} {
		for range 20 {
			time.Sleep(pause)
			c.Do(func() {
				if got := prctl(unknownOption); got != unix.EXDEV {
					t.Errorf("%v after the last call the answer is %v", pause, got)
				}
			})
			runtime.GC()
		}
	}
}

// even lets calls with an even argument continue.
type even struct{ asked int }

func (*even) Begin() {}
func (*even) End()   {}

//go:nosplit
//go:norace
func (e *even) Decide(n *notify.Notification) bool {
	e.asked++
	return n.Args[1]%2 == 0
}

// stuck waits in every call until something can be read.
type stuck struct{ pipe int }

func (*stuck) Begin() {}
func (*stuck) End()   {}

//go:nosplit
//go:norace
func (s *stuck) Decide(*notify.Notification) bool {
	var b [1]byte
	_, _, _ = unix.RawSyscall(unix.SYS_READ, uintptr(s.pipe), uintptr(unsafe.Pointer(&b)), 1)
	return true
}

// More sessions than there are threads for have calls all the time, and each of
// them is answered: also if a call of each of the others is stuck. This test is
// not parallel, because it holds up other sessions.
func TestSession_AnswersMoreSessionsThanThereAreThreads(t *testing.T) {
	var pipe [2]int
	harness.Must(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	var all []<-chan struct{}
	start := func(decider notify.Decider, calls uintptr) <-chan struct{} {
		c := newCaller(t, unix.SYS_PRCTL)
		session, err := notify.SuperviseWith(c.Listener, notify.Table{}, decider)
		harness.Must(t, err)
		t.Cleanup(func() { harness.Must(t, session.Close()) })
		return c.Go(func() {
			for i := range calls {
				if got := prctl(unknownOption, 2*i); got != unix.EINVAL {
					t.Errorf("the answer to %d is %v", i, got)
				}
			}
		})
	}
	await := func(what string, done <-chan struct{}) {
		select {
		case <-done:
		case <-deadline.After(timeout):
			t.Errorf("%s are not answered", what)
		}
	}
	for range notify.Threads + 16 {
		all = append(all, start(&even{}, 500))
	}
	for _, done := range all {
		await("many sessions' calls", done)
	}
	all = nil
	for range notify.Threads {
		all = append(all, start(&stuck{pipe[0]}, 1))
	}
	await("calls beside stuck ones", start(&even{}, 5))
	for _, done := range all {
		select {
		case <-done:
			t.Error("a call was not stuck")
		default:
		}
	}
	harness.Must(t, unix.Close(pipe[1]))
	for _, done := range all {
		await("calls that were stuck", done)
	}
	harness.Must(t, unix.Close(pipe[0]))
}

func TestSession_AsksItsDeciderFirst(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	decider, handled := &even{}, 0
	session, err := notify.SuperviseWith(c.Listener, notify.Table{
		Places: map[notify.Key]int{key(unix.SYS_PRCTL): 0},
		Handlers: []notify.Handler{{Quick: true, Handle: func(call *notify.Call) {
			handled++
			call.Fail(unix.EXDEV)
		}}},
	}, decider)
	if err != nil {
		t.Fatal(err)
	}
	const calls = 2000
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for range 50 {
			runtime.GC()
		}
	}()
	c.Do(func() {
		for i := range uintptr(calls) {
			want := unix.EINVAL // the kernel's own answer
			if i%2 != 0 {
				want = unix.EXDEV
			}
			if got := prctl(unknownOption, i); got != want {
				t.Errorf("answer to %d is %v, want %v", i, got, want)
			}
		}
	})
	<-collected
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	if decider.asked != calls || handled != calls/2 {
		t.Errorf("the decider was asked about %d calls, and the handler about %d", decider.asked, handled)
	}
}

func TestSession_ClosesWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond} {
		c := newCaller(t, unix.SYS_PRCTL)
		session := supervise(t, c, nil)
		c.Do(func() { prctl(unknownOption) })
		time.Sleep(pause)
		begun := time.Now()
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > timeout {
			t.Errorf("%v after a call it takes %v to close a session", pause, took)
		}
	}
}

// After the calling thread ends, no process uses the filter.
func TestSession_ReportsThatItIsEmpty(t *testing.T) {
	t.Parallel()
	var session *notify.Session
	t.Run("caller", func(t *testing.T) {
		c := newCaller(t, unix.SYS_PRCTL)
		var err error
		if session, err = notify.Supervise(c.Listener, nil); err != nil {
			t.Fatal(err)
		}
		select {
		case <-session.Empty():
			t.Error("the session is reported empty while its caller lives")
		default:
		}
	})
	if session == nil {
		t.Skip("see above")
	}
	defer session.Close()
	select {
	case <-session.Empty():
	case <-deadline.After(timeout):
		t.Error("the session has no caller and is not reported empty")
	}
}

func TestReach(t *testing.T) {
	t.Parallel()
	if err := errors.Join(notify.Reach(), notify.ReachDescriptors()); err != nil {
		harness.Skip(t, "user_notification", err.Error())
	}
}
