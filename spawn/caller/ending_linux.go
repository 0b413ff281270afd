package caller

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// defaultAction gives a signal its default action. Package signal could not:
// Go's runtime keeps its own handler, which prints where each goroutine is.
func defaultAction(number unix.Signal) error {
	var standard [4]uint64 // struct sigaction with SIG_DFL
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(number), uintptr(unsafe.Pointer(&standard)), 0, 8, 0,
		0)
	if errno != 0 && number != unix.SIGKILL {
		return fmt.Errorf("reset %s: %w", unix.SignalName(number), errno)
	}
	return nil
}
