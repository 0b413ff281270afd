package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hideMemory keeps this process' memory from other programs of the user: there
// are no core dumps, and no debugger attaches (PT_DENY_ATTACH, ptrace(2)).
func hideMemory() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switch core dumps off: %w", err)
	}
	if err := unix.PtraceDenyAttach(); err != nil {
		return fmt.Errorf("keep debuggers away: %w", err)
	}
	return nil
}
