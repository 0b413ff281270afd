package harness

import (
	"testing"
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

// ProcessorTime returns how long all threads of a process have run. Unlike the
// time on the clock it says the same on a busy machine.
func ProcessorTime(t testing.TB, pid int) time.Duration {
	t.Helper()
	// CPUCLOCK_SCHED in include/linux/posix-timers_types.h; clock_getcpuclockid(3)
	const perProcess = 2
	var spent unix.Timespec
	Must(t, unix.ClockGettime(int32(^pid)<<3|perProcess, &spent))
	return time.Duration(spent.Nano())
}
