package syscalls

import "golang.org/x/sys/unix"

// nativeRefusals are refusals of calls that other architectures do not have.
var nativeRefusals = []refusal{
	{"iopl", unix.SYS_IOPL, []uint64{99}, "EPERM", anybody},
	{"ioperm", unix.SYS_IOPERM, []uint64{minus, 1, 1}, "EPERM", anybody},
}
