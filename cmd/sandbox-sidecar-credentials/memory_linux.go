package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideMemory keeps this process' memory from other programs of the user: there
// are no core dumps, and no debugger reads it (PR_SET_DUMPABLE, prctl(2)). It
// stays in memory where the limit of locked memory allows that (mlockall(2));
// ordinary users have too low a limit for that, and then it may be swapped out.
func hideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep memory from core dumps: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switch core dumps off: %w", err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err == nil && limit.Cur == unix.RLIM_INFINITY {
		_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | mclOnFault) // Linux 4.4
	}
	return nil
}

// mclOnFault locks pages when they are used: a Go program reserves far more than it
// uses (MCL_ONFAULT, include/uapi/asm-generic/mman.h).
const mclOnFault = 4
