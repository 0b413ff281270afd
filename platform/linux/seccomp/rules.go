package seccomp

// rule decides about one system call. The rules of a call are evaluated in
// order, and the first whose conditions all hold decides. A call is allowed if
// no rule decides about it.
type rule struct {
	call string
	when []condition // if empty, the rule always holds
	do   Action
	// why says what the call would make possible, or why the answer is this
	// error: programs have fallbacks for some errors and not for others.
	why string
}

// condition tests one argument, counted from 0. The kernel reads an int from
// the low half of a register, and the program can leave anything in the high
// half. So the mask of such an argument must end at bit 31.
type condition struct {
	arg  int
	mask uint64
	// The condition holds if the masked argument is equals, or, if anyBit is
	// true, if any bit of the mask is set.
	equals uint64
	anyBit bool
	// large takes O_LARGEFILE out of the mask. Some C libraries set that flag,
	// and on other architectures its number means another flag.
	large bool
	// stack ignores mask and equals: the condition holds if the argument is an
	// address in one of the architecture's stacks.
	stack bool
}

// maskOn returns the mask for an architecture.
func (c condition) maskOn(a *arch) uint64 {
	if c.large {
		return c.mask &^ a.largeFile
	}
	return c.mask
}

func argIs(arg int, value uint32) condition {
	return condition{arg: arg, mask: low, equals: uint64(value)}
}

func maskedArgIs(arg int, mask, value uint32) condition {
	return condition{arg: arg, mask: uint64(mask), equals: uint64(value)}
}

// typeIs tests the type of a socket, which shares its argument with flags.
func typeIs(kind uint32) condition { return maskedArgIs(1, socketTypeMask, kind) }

func argOnStack(arg int) condition { return condition{arg: arg, stack: true} }

func argHasAny(arg int, mask uint64) condition { return condition{arg: arg, mask: mask, anyBit: true} }

const low = 1<<32 - 1

// Constants of Linux, on whatever system this runs.
const (
	familyUnix, familyInet, familyInet6, familyNetlink = 1, 2, 10, 16

	// socketPacket is SOCK_PACKET. With it, AF_INET means AF_PACKET
	// (net/socket.c, __sock_create).
	socketTypeMask, socketPacket  = 0xf, 10
	socketStream, socketSeqpacket = 1, 5
	netlinkRoute                  = 0

	ioctlTIOCSTI, ioctlTIOCLINUX = 0x5412, 0x541c

	// F_SETLEASE and F_SETDELEG are the same on all architectures that this
	// package knows.
	fcntlSetLease, fcntlSetDelegation = 1024, 1040

	// cloneNamespaces are CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER,
	// NEWPID and NEWNET.
	cloneNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	// cloneParent is CLONE_PARENT.
	cloneParent = 0x00008000
	// unshareHarmless are CLONE_VM, FS, FILES, SIGHAND, THREAD and SYSVSEM.
	unshareHarmless = 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800 | 0x00010000 | 0x00040000
)

// baseRules hold for every restricted session. Most refusals are EPERM: that is
// what these calls answer to a process without the capability, and what the
// filters of container engines answer. Programs can handle it.
var baseRules = []rule{
	{
		call: "clone3", do: refuseENOSYS,
		why: "with CLONE_INTO_CGROUP a process leaves the session's cgroup and outlives it; its flags are in memory, " +
			"which a filter cannot read; after ENOSYS libraries use clone",
	},
	{
		call: "io_uring_setup", do: refuseENOSYS,
		why: "its operations are not filtered; libuv and others work without it",
	},
	{call: "io_uring_enter", do: refuseENOSYS, why: "a ring may have been inherited"},
	{call: "io_uring_register", do: refuseENOSYS, why: "a ring may have been inherited"},

	{
		call: "ioctl", when: []condition{argIs(1, ioctlTIOCSTI)}, do: refuseEPERM,
		why: "types into the terminal for the user",
	},
	{call: "ioctl", when: []condition{argIs(1, ioctlTIOCLINUX)}, do: refuseEPERM, why: "pastes into a virtual console"},

	{
		call: "unshare", when: []condition{argHasAny(0, ^uint64(unshareHarmless))}, do: refuseEPERM,
		why: "namespaces: a user namespace gives every capability inside it, and so access to the parts " +
			"of the kernel that most attacks need; flags of future kernels too",
	},
	{call: "clone", when: []condition{argHasAny(0, cloneNamespaces)}, do: refuseEPERM, why: "namespaces; see unshare"},
	{
		call: "clone", when: []condition{argHasAny(0, cloneParent)}, do: refuseEPERM,
		why: "the child becomes a child of the outside parent, which must wait for it: thousands of zombies " +
			"are possible",
	},
	{call: "setns", do: refuseEPERM, why: "namespaces; see unshare"},

	{
		call: "fcntl", when: []condition{argIs(1, fcntlSetLease)}, do: refuseEACCES,
		why: "a lease on a file makes every process that opens it wait for up to 45 seconds, and the " +
			"right to read is enough for one; EACCES is the kernel's answer for another user's file",
	},
	{
		call: "fcntl", when: []condition{argIs(1, fcntlSetDelegation)}, do: refuseEACCES,
		why: "a lease by another name (Linux 6.19)",
	},
	{call: "fcntl64", when: []condition{argIs(1, fcntlSetLease)}, do: refuseEACCES, why: "see fcntl"},
	{call: "fcntl64", when: []condition{argIs(1, fcntlSetDelegation)}, do: refuseEACCES, why: "see fcntl"},

	{call: "mount", do: refuseEPERM, why: "changes which file a path leads to"},
	{call: "umount", do: refuseEPERM, why: "uncovers what a mount hides"},
	{call: "umount2", do: refuseEPERM, why: "uncovers what a mount hides"},
	{call: "pivot_root", do: refuseEPERM, why: "see mount"},
	{call: "open_tree", do: refuseEPERM, why: "see mount"},
	{call: "open_tree_attr", do: refuseEPERM, why: "see mount"},
	{call: "move_mount", do: refuseEPERM, why: "see mount"},
	{call: "fsopen", do: refuseEPERM, why: "see mount"},
	{call: "fsconfig", do: refuseEPERM, why: "see mount"},
	{call: "fsmount", do: refuseEPERM, why: "see mount"},
	{call: "fspick", do: refuseEPERM, why: "see mount"},
	{call: "mount_setattr", do: refuseEPERM, why: "see mount"},
	{call: "open_by_handle_at", do: refuseEPERM, why: "opens by inode number, without a path that could be checked"},

	{
		call: "process_vm_readv", do: refuseEPERM,
		why: "reads another process; debuggers use ptrace, which Landlock limits to the session",
	},
	{call: "process_vm_writev", do: refuseEPERM, why: "writes to another process; see process_vm_readv"},
	{call: "pidfd_getfd", do: refuseEPERM, why: "takes another process's descriptors"},
	{call: "add_key", do: refuseEPERM, why: "keyrings belong to the user, not to the session"},
	{call: "request_key", do: refuseEPERM, why: "starts a program outside to fetch the key"},
	{call: "keyctl", do: refuseEPERM, why: "keyrings belong to the user, not to the session"},

	{call: "userfaultfd", do: refuseEPERM, why: "stops the kernel in the middle of a copy, which exploits rely on"},
	{call: "bpf", do: refuseEPERM, why: "code in the kernel"},
	{call: "perf_event_open", do: refuseEPERM, why: "observes other processes and the kernel"},
	{call: "kexec_load", do: refuseEPERM, why: "another kernel"},
	{call: "kexec_file_load", do: refuseEPERM, why: "another kernel"},
	{call: "init_module", do: refuseEPERM, why: "code in the kernel"},
	{call: "finit_module", do: refuseEPERM, why: "code in the kernel"},
	{call: "delete_module", do: refuseEPERM, why: "takes code out of the kernel"},
	{call: "iopl", do: refuseEPERM, why: "I/O ports of the machine"},
	{call: "ioperm", do: refuseEPERM, why: "I/O ports of the machine"},
	{call: "swapon", do: refuseEPERM, why: "affects the whole machine"},
	{call: "swapoff", do: refuseEPERM, why: "affects the whole machine"},
	{call: "reboot", do: refuseEPERM, why: "affects the whole machine"},
	{call: "acct", do: refuseEPERM, why: "writes a log of all processes to any file"},
	{call: "quotactl", do: refuseEPERM, why: "affects the whole machine"},
	{call: "quotactl_fd", do: refuseEPERM, why: "affects the whole machine"},
	{call: "lookup_dcookie", do: refuseEPERM, why: "reveals paths of other processes; removed in Linux 6.7"},

	{
		call: "socketpair", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "a pipe in both directions, which reaches nothing else",
	},
	{call: "socketpair", do: refuseEAFNOSUPPORT, why: "see socket"},
	{
		call: "socketcall", do: refuseEACCES,
		why: "its arguments are in memory, which a filter cannot read: 32-bit x86 programs that use it " +
			"instead of socket get no sockets",
	},
}

// socketRules are for a session that has the network. They answer as a kernel
// without that family or protocol does, because programs have fallbacks for
// that: PAM works without NETLINK_AUDIT after EPROTONOSUPPORT, and fails after
// EACCES.
var socketRules = []rule{
	{
		call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "Landlock decides what it may reach",
	},
	{
		call: "socket", when: []condition{argIs(0, familyInet), typeIs(socketPacket)}, do: refuseEAFNOSUPPORT,
		why: "the oldest way to AF_PACKET",
	},
	{call: "socket", when: []condition{argIs(0, familyInet)}, do: actionAllow, why: "the network"},
	{call: "socket", when: []condition{argIs(0, familyInet6)}, do: actionAllow, why: "the network"},
	{
		call: "socket", when: []condition{argIs(0, familyNetlink), argIs(2, netlinkRoute)}, do: actionAllow,
		why: "the C library and many programs read the machine's addresses from it",
	},
	{
		call: "socket", when: []condition{argIs(0, familyNetlink)}, do: refuseEPROTONOSUPPORT,
		why: "audit, udev, firewalls and the rest",
	},
	{
		call: "socket", do: refuseEAFNOSUPPORT,
		why: "AF_VSOCK reaches the host of a virtual machine, AF_PACKET every packet; most others are " +
			"rarely used and often attacked",
	},
}

// mediationRules are for a session whose Unix sockets the supervisor connects;
// see package sockets. Stream and seqpacket sockets keep the peer that
// connect(2) gave them: sendmsg(2) with an address fails or ignores it. Each
// datagram can have another address, in memory, even from an end of a
// socketpair. Without datagram sockets a session loses log messages to syslog.
var mediationRules = []rule{
	{
		call: "socket", when: []condition{argIs(0, familyUnix), typeIs(socketStream)}, do: actionAllow,
		why: "the supervisor decides about connect",
	},
	{
		call: "socket", when: []condition{argIs(0, familyUnix), typeIs(socketSeqpacket)}, do: actionAllow,
		why: "the supervisor decides about connect",
	},
	{
		call: "socket", when: []condition{argIs(0, familyUnix)}, do: refuseEACCES,
		why: "datagrams reach any socket without connect; SOCK_RAW means the same",
	},
	{
		call: "socketpair", when: []condition{argIs(0, familyUnix), typeIs(socketStream)}, do: actionAllow,
		why: "a pipe in both directions",
	},
	{
		call: "socketpair", when: []condition{argIs(0, familyUnix), typeIs(socketSeqpacket)}, do: actionAllow,
		why: "a pipe in both directions",
	},
	{
		call: "socketpair", when: []condition{argIs(0, familyUnix)}, do: refuseEACCES,
		why: "sendto with an address reaches a socket outside the pair",
	},
	{call: "connect", do: actionNotify, why: "the address is in memory, and the descriptor can be replaced"},
	{call: "bind", do: actionNotify, why: "the supervisor must know which sockets the session itself has bound"},
}

// hostsRule is for a session that reaches hosts through the supervisor; see
// package network.
var hostsRule = rule{call: "connect", do: actionNotify, why: "the supervisor connects to allowed hosts"}

// offlineRules are for a session without network. EACCES is what a firewall
// answers, and programs print it as "permission denied".
var offlineRules = []rule{
	{
		call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "Landlock decides what it may reach",
	},
	{call: "socket", do: refuseEACCES, why: "allow_network is false; new protocols of a known family are refused too"},
}
