//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// withoutLandlock becomes another program, for which the kernel has no
// Landlock: a filter answers landlock_create_ruleset(2), which also returns the
// version, with ENOSYS.
func withoutLandlock(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no program", errMisuse)
	}
	// The number is at offset 0 of struct seccomp_data. It is 444 on every
	// architecture.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	return filtered(filter, args)
}
