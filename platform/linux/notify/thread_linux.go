package notify

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs do on a thread that is discarded afterwards, and waits for it,
// so do may change the thread in any way. It never uses the process's main
// thread: that one would not end, and others see it as the process.
func OnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			OnThread(do) // another thread, since this goroutine holds this one
			runtime.UnlockOSThread()
			return
		}
		do() // never unlocked, so the thread ends with the goroutine
	}()
	<-done
}
