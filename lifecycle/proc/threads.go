//go:build unix

package proc

import (
	"runtime"
	"sync"
)

// ReserveThreads starts threads for Go's runtime, which keeps them. The runtime
// starts a thread whenever all others wait in system calls, and ends the program
// if the kernel refuses that. A session can bring the kernel to refuse it.
func ReserveThreads(number int) {
	var started, ended sync.WaitGroup
	enough := make(chan struct{})
	started.Add(number)
	for range number {
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			started.Done()
			<-enough // meanwhile no other goroutine can have this thread
		})
	}
	started.Wait()
	close(enough)
	ended.Wait()
}
