package notify_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/notify"
)

// Waiting calls hold no slot: many more than are handled at a time can wait
// together.
func TestCall_WaitsWithoutBlockingOthers(t *testing.T) {
	t.Parallel()
	const callers = 40
	var gate [2]int
	if err := unix.Pipe2(gate[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	waited, opened := gate[0], gate[1]
	defer unix.Close(waited)
	c := newCaller(t, unix.SYS_SYNC)
	var waiting atomic.Int32
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_SYNC): {Handle: func(call *notify.Call) {
		if waiting.Add(1) == callers {
			unix.Close(opened) // all callers have arrived
		}
		defer call.Succeed()
		fd, err := unix.Dup(waited)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(fd)
		if ready, err := call.Wait(fd, unix.EPOLLIN, timeout); err != nil || !ready {
			t.Errorf("ready: %t, %v", ready, err)
		}
	}}})
	c.Do(func() {
		line := fmt.Sprintf("for i in $(seq %d); do sync & done; wait", callers)
		if out, err := exec.Command("/bin/sh", "-c", line).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	if got := waiting.Load(); got != callers {
		t.Errorf("%d calls arrived, want %d", got, callers)
	}
}

func TestCall_WaitTimesOut(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {Handle: func(call *notify.Call) {
		if ready, err := call.Wait(-1, 0, time.Millisecond); err != nil || ready {
			t.Errorf("ready: %t, %v", ready, err)
		}
		call.Succeed()
	}}})
	c.Do(func() {
		if got := prctl(unknownOption); got != 0 {
			t.Errorf("the caller is answered with %v", got)
		}
	})
}

func TestCall_WaitEndsBySignalAndByDeath(t *testing.T) {
	for _, piece := range []time.Duration{time.Millisecond, timeout} {
		waitEnds(t, piece)
	}
}

func waitEnds(t *testing.T, piece time.Duration) {
	t.Helper()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGUSR2)
	defer signal.Stop(signals)
	c := newCaller(t, unix.SYS_PRCTL)
	waits := make(chan struct{}, 1)
	outcome := make(chan error, 1)
	session := supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {Handle: func(call *notify.Call) {
		waits <- struct{}{}
		var err error
		for err == nil { // in pieces, as for a busy server
			_, err = call.Wait(-1, 0, piece)
		}
		outcome <- err
		call.Fail(unix.EINTR)
	}}})
	done := c.Go(func() {
		if got := prctl(unknownOption); got != unix.EINTR {
			t.Errorf("the caller is answered with %v", got)
		}
	})
	<-waits
	if err := unix.Tgkill(os.Getpid(), c.TID, unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := <-outcome; !errors.Is(err, unix.EINTR) {
		t.Errorf("a signal ends the wait with %v", err)
	}
	done = c.Go(func() { prctl(unknownOption) })
	<-waits
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if err := <-outcome; !errors.Is(err, notify.ErrGone) {
		t.Errorf("the end of the session ends the wait with %v", err)
	}
	<-done
}

func TestCall_ReturnsDescriptorsAndAwaitsAnswers(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	text := []byte("/a/path\x00rest")
	long := append(bytes.Repeat([]byte("x"), 5000), 0)
	answered := make(chan struct{})
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {
		FastPath: func(call *notify.Call) bool {
			if call.Args[1] == 1 {
				call.Fail(unix.EXDEV)
			}
			return call.Args[1] == 1
		},
		Handle: func(call *notify.Call) {
			if got, err := call.Text(call.Args[2]); err != nil || got != "/a/path" {
				t.Errorf("text is %q, %v", got, err)
			}
			if _, err := call.Text(call.Args[3]); !errors.Is(err, unix.ENAMETOOLONG) {
				t.Errorf("a long text: %v", err)
			}
			if pid, name, err := call.Process(); pid != os.Getpid() || name == "" || err != nil {
				t.Errorf("process is %d %q, %v", pid, name, err)
			}
			if mask, err := call.Umask(); mask > 0o777 || err != nil {
				t.Errorf("umask is %#o, %v", mask, err)
			}
			if ready, err := call.Await(make(chan struct{}), time.Millisecond); ready || err != nil {
				t.Errorf("await an open channel: %t, %v", ready, err)
			}
			if ready, err := call.Await(answered, timeout); !ready || err != nil {
				t.Errorf("await a closed channel: %t, %v", ready, err)
			}
			var ends [2]int
			if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
				t.Error(err)
			}
			if _, err := unix.Write(ends[1], []byte("gift")); err != nil {
				t.Error(err)
			}
			unix.Close(ends[1])
			if err := call.ReturnFD(ends[0], call.Args[4] == 1); err != nil {
				t.Error(err)
			}
			unix.Close(ends[0])
		},
	}})
	close(answered)
	c.Do(func() {
		if got := prctl(unknownOption, 1); got != unix.EXDEV {
			t.Errorf("the first answer is %v", got)
		}
	})
	for _, closeOnExec := range []uintptr{0, 1} {
		c.Do(func() {
			fd, _, errno := unix.Syscall6(unix.SYS_PRCTL, unknownOption, 2, uintptr(unsafe.Pointer(&text[0])),
				uintptr(unsafe.Pointer(&long[0])), closeOnExec, 0)
			if errno != 0 {
				t.Fatal(errno)
			}
			defer unix.Close(int(fd))
			var got [8]byte
			n, err := unix.Read(int(fd), got[:])
			if err != nil || string(got[:n]) != "gift" {
				t.Errorf("got %q, %v", got[:n], err)
			}
			if flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0); err != nil ||
				flags != int(closeOnExec)*unix.FD_CLOEXEC {
				t.Errorf("flags are %#x, %v", flags, err)
			}
		})
	}
}

// Text takes no path that the kernel would not take, wherever it is in a page.
func TestCall_TextsAreAsLongAsPaths(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	answers := make(chan error, 1)
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {Handle: func(call *notify.Call) {
		text, err := call.Text(call.Args[1])
		if err == nil && len(text) != int(call.Args[2]) {
			t.Errorf("%d bytes of %d", len(text), call.Args[2])
		}
		answers <- err
		call.Succeed()
	}}})
	const page = 4096
	memory, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	for _, offset := range []int{0, 1, 255, 256, 257, page / 2, page - 1} {
		for _, length := range []int{0, 1, 256, page - 2, page - 1, page, page + 1, 2*page - 2, 2*page - 1, 2 * page} {
			text := memory[offset : offset+length+1]
			copy(text, bytes.Repeat([]byte("/"), length))
			text[length] = 0
			want := unix.Access(string(text[:length]), unix.F_OK)
			if length == 0 {
				want = nil // no path, but a text
			}
			c.Do(func() { prctl(unknownOption, uintptr(unsafe.Pointer(&text[0])), uintptr(length)) })
			if got := <-answers; !errors.Is(got, want) {
				t.Errorf("%d bytes at %d: %v, the kernel says %v", length, offset, got, want)
			}
		}
	}
}

// A signal to the thread that answers, such as the Go scheduler sends, does not
// make a call return 0 in the place of its descriptor.
func TestCall_ReturnsDescriptorsDespiteSignals(t *testing.T) {
	t.Parallel()
	c := newCaller(t, unix.SYS_PRCTL)
	var answering atomic.Int64
	supervise(t, c, map[notify.Key]notify.Handler{key(unix.SYS_PRCTL): {Handle: func(call *notify.Call) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			t.Error(err)
		}
		defer unix.Close(fd)
		answering.Store(int64(unix.Gettid()))
		if err := call.ReturnFD(fd, true); err != nil {
			t.Error(err)
		}
		answering.Store(0)
	}}})
	ended := make(chan struct{})
	var signals sync.WaitGroup
	signals.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			if thread := int(answering.Load()); thread != 0 {
				_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			}
		}
	})
	const calls = 3000
	c.Do(func() {
		wrong := 0
		for range calls {
			fd, _, errno := unix.Syscall(unix.SYS_PRCTL, unknownOption, 0, 0)
			if errno != 0 || fd == 0 {
				wrong++
				continue
			}
			unix.Close(int(fd))
		}
		if wrong > 0 {
			t.Errorf("%d of %d calls got no descriptor", wrong, calls)
		}
	})
	close(ended)
	signals.Wait()
}
