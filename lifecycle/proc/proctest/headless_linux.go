package proctest

import (
	"runtime"
	"syscall"
)

func init() {
	runtime.LockOSThread() // before main, on the first thread; see "headless"
	Helpers["headless"] = func([]string) {
		go WaitForEver()
		Ready()
		// The main goroutine is on the first thread only at the start of a
		// program. It is locked to it, so this ends that thread and nothing
		// else.
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}
