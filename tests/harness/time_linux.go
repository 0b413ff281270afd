package harness

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is the processor time that this thread has taken.
func threadTime() time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &used); err != nil {
		panic(err) // it fails only for another argument (getrusage(2))
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
