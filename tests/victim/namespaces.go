//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutNamespaces becomes another program that cannot make a namespace. A
// filter refuses clone(2) and unshare(2) with any of their flags. It answers
// clone3(2), whose flags no filter can read, with ENOSYS.
func withoutNamespaces(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no program", errMisuse)
	}
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jt: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_UNSHARE, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callArgument},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: namespaces, Jt: 1, Jf: 2},
		answer(unix.ENOSYS),
		answer(unix.EPERM),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	return filtered(filter, args)
}

// filtered becomes another program under a filter of system calls.
func filtered(filter []unix.SockFilter, args []string) error {
	runtime.LockOSThread() // the filter belongs to the thread
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0,
		0); err != nil {
		return err
	}
	return unix.Exec(args[0], args, os.Environ())
}
