//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// What the default filters of container engines refuse, and AppArmor on Ubuntu.
// The lists are facts; how a call is refused is the engine's, too.

// Offsets in struct seccomp_data. The first argument is its lower half on a
// little-endian machine.
const callNumber, callArgument = 0, 16

// dockerRefuses are the calls that Docker's default filter (moby/profiles, June
// 2026) refuses to a container without added capabilities, and that exist on
// amd64 and arm64. It refuses namespaces besides, see asContainer.
var dockerRefuses = []uint32{
	unix.SYS_ACCT, unix.SYS_ADD_KEY, unix.SYS_BPF, unix.SYS_CLOCK_SETTIME, unix.SYS_DELETE_MODULE,
	unix.SYS_FANOTIFY_INIT, unix.SYS_FINIT_MODULE, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSOPEN,
	unix.SYS_FSPICK, unix.SYS_GET_MEMPOLICY, unix.SYS_INIT_MODULE, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_IO_URING_SETUP, unix.SYS_KCMP, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEYCTL, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_LSM_GET_SELF_ATTR,
	unix.SYS_LSM_LIST_MODULES, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOUNT,
	unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOVE_PAGES, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_OPEN_TREE, unix.SYS_PERF_EVENT_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIVOT_ROOT,
	unix.SYS_PROCESS_MADVISE, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_REBOOT, unix.SYS_REQUEST_KEY,
	unix.SYS_SET_MEMPOLICY, unix.SYS_SET_MEMPOLICY_HOME_NODE, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME,
	unix.SYS_SETNS, unix.SYS_SETTIMEOFDAY, unix.SYS_SWAPOFF, unix.SYS_SWAPON, unix.SYS_SYSLOG, unix.SYS_UMOUNT2,
	unix.SYS_UNSHARE, unix.SYS_USERFAULTFD, unix.SYS_VHANGUP,
}

// dockerKnows is the last call that the filter knows (Linux 6.13). Later ones do
// not exist for the container.
const dockerKnows = unix.SYS_REMOVEXATTRAT

// asContainer becomes another program under Docker's default filter.
func asContainer(args []string) error {
	filter := append(refusing(unix.EPERM, dockerRefuses, dockerKnows),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SOCKET, Jf: 4},
		unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callArgument},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_ALG, Jt: 1},
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.AF_VSOCK, Jf: 1},
		answer(unix.EPERM))
	return confined(filter, append([]string{"/proc/self/exe", "without-namespaces"}, args...))
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
	return confined(refusing(unix.ENOSYS, podmanRefuses, podmanKnows), args)
}

// asUbuntu becomes another program as AppArmor on Ubuntu leaves an ordinary
// user's: it makes user namespaces, and can change no mount in them.
func asUbuntu(args []string) error {
	return confined(refusing(unix.EACCES, []uint32{
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_TREE,
		unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_CHROOT,
	}, ^uint32(0)>>1), args)
}

// withoutPidfd becomes another program on a kernel that has no pidfds.
func withoutPidfd(args []string) error {
	calls := []uint32{unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD}
	return confined(refusing(unix.ENOSYS, calls, ^uint32(0)>>1), args)
}

// refusing is the beginning of a filter that answers calls with an error, and
// later calls than the last known one as if the kernel had none. The number of
// the call is loaded when it ends.
func refusing(errno unix.Errno, calls []uint32, last uint32) []unix.SockFilter {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: callNumber},
		{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: last, Jf: 1},
		answer(unix.ENOSYS),
	}
	for _, call := range calls {
		is := unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jf: 1}
		filter = append(filter, is, answer(errno))
	}
	return filter
}

// answer lets a call fail.
func answer(errno unix.Errno) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

// confined becomes another program under a filter that allows the rest.
func confined(filter []unix.SockFilter, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: no program", errMisuse)
	}
	return filtered(append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}), args)
}
