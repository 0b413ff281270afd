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
	// offsets in struct seccomp_data; the argument's lower half on a
	// little-endian machine
	const number, firstArgument = 0, 16
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE3, Jt: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CLONE, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_UNSHARE, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: firstArgument},
		{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: namespaces, Jt: 1, Jf: 2},
		refuse(unix.ENOSYS),
		refuse(unix.EPERM),
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	return filtered(filter, args)
}

// asContainer becomes another program as in a container of an engine whose
// filter is the usual one: there are no namespaces, and no process can take
// another's descriptors or read its memory.
func asContainer(args []string) error {
	const number = 0 // an offset in struct seccomp_data
	return filtered([]unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_GETFD, Jt: 2},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PROCESS_VM_READV, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}, append([]string{"/proc/self/exe", "without-namespaces"}, args...))
}

// podmanRefuses are calls that the default filter of Podman (containers-common,
// since 2022) refuses to a container without added capabilities, and that a
// sandbox could want. It lets namespaces, mounts and Landlock pass.
var podmanRefuses = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_FANOTIFY_INIT, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_IO_URING_SETUP, unix.SYS_KCMP, unix.SYS_MOVE_PAGES, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_PROCESS_MADVISE, unix.SYS_QUOTACTL, unix.SYS_REQUEST_KEY, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME,
	unix.SYS_USERFAULTFD, unix.SYS_VHANGUP, unix.SYS_VMSPLICE,
}

// podmanKnows is the last call that the filter knows: cachestat, fchmodat2 …
// (Linux 6.6). Later ones do not exist for the container.
const podmanKnows = unix.SYS_FCHMODAT2

// asPodman becomes another program under such a filter.
func asPodman(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no program", errMisuse)
	}
	const number = 0 // an offset in struct seccomp_data
	refusal := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: podmanKnows, Jf: 1},
		refusal,
	}
	for _, call := range podmanRefuses {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}, refusal)
	}
	return filtered(append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}), args)
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
