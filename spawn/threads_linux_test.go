package spawn

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// The kernel sends a death signal (PR_SET_PDEATHSIG, prctl(2)) when the thread
// that forked dies, not the process, and threads of a Go program come and go. A
// session survives that. The control is a process that asked for the signal.
func TestStart_SessionOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	s := newFixture(t, &platformtest.Fake{})
	control := exec.Command("sleep", "300")
	control.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var session *Session
	var err error
	thread := onDyingThread(func() {
		if err = control.Start(); err == nil {
			session, err = s.Start(t.Context(), s.line("echo up; read line; exit 7"))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	session.Begin(r, nil)
	r.await(t, "up")
	_ = control.Wait()
	if state := control.ProcessState.Sys().(syscall.WaitStatus); !state.Signaled() || state.Signal() != unix.SIGKILL {
		t.Errorf("control: %s, expected death with its parent's thread", control.ProcessState)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread)); err == nil {
		t.Errorf("thread %d lives", thread)
	}
	session.Input([]byte("\n"))
	if exit, _ := r.end(t); exit.Code != 7 {
		t.Errorf("the session ended with %+v", exit)
	}
}

// onDyingThread calls do on a thread, waits for the thread's death, and returns
// its id.
func onDyingThread(do func()) (thread int) {
	for done := false; !done; {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()                             // never unlocked, so the thread ends with the goroutine
			if thread = unix.Gettid(); thread != os.Getpid() { // Go keeps the main thread
				do()
				done = true
			}
		}()
		<-ended
	}
	deadline.Until(timeout, func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", thread))
		return err != nil
	})
	return thread
}
