package notify

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs do on a thread that is thrown away afterwards, whatever do has
// made of it, and waits for it. It is never the process's first thread: that
// one does not end, and shows to others what the process is.
func OnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			OnThread(do) // on another, as this one is taken
			runtime.UnlockOSThread()
			return
		}
		do() // and never unlocked, so that the thread ends with the goroutine
	}()
	<-done
}
