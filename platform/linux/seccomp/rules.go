package seccomp

// rule answers one system call. Rules of a call are asked in their
// order, and the first whose conditions hold answers; where none does, and for
// every call without a rule, the answer is to allow.
type rule struct {
	call string
	when []condition // all of them; none: always
	do   Action
	// why says what the call would open, or why this very error: programs have
	// ways around some errors and not around others.
	why string
}

// condition looks at one argument, counted from 0. The kernel takes what it
// declares as int from the low half of a register only, and leaves in the other
// half whatever a program put there: masks of such arguments end at bit 31.
type condition struct {
	arg  int
	mask uint64
	// equals compares the masked argument; some asks whether any bit of the
	// mask is set.
	equals uint64
	some   bool
	// large leaves O_LARGEFILE out of the mask, which C libraries set or not
	// and whose number is another flag's elsewhere.
	large bool
	// stack asks whether the argument is an address in one of the
	// architecture's stacks, whatever else is set here.
	stack bool
}

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

// typeIs asks for the type of a socket, which shares its argument with flags.
func typeIs(kind uint32) condition { return maskedArgIs(1, socketTypeMask, kind) }

func argOnStack(arg int) condition { return condition{arg: arg, stack: true} }

func argHas(arg int, mask uint64) condition { return condition{arg: arg, mask: mask, some: true} }

const low = 1<<32 - 1

// Constants of Linux, whatever system this is built for.
const (
	familyUnix, familyInet, familyInet6, familyNetlink = 1, 2, 10, 16

	// socketPacket is SOCK_PACKET, by which AF_INET means AF_PACKET
	// (net/socket.c, __sock_create).
	socketTypeMask, socketPacket  = 0xf, 10
	socketStream, socketSeqpacket = 1, 5
	netlinkRoute                  = 0

	ioctlTIOCSTI, ioctlTIOCLINUX = 0x5412, 0x541c

	// F_SETLEASE and F_SETDELEG, the same numbers on every architecture here.
	fcntlSetLease, fcntlSetDelegation = 1024, 1040

	// cloneNamespaces are CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER,
	// NEWPID and NEWNET.
	cloneNamespaces = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	// cloneParent is CLONE_PARENT.
	cloneParent = 0x00008000
	// unshareHarmless are CLONE_VM, FS, FILES, SIGHAND, THREAD and SYSVSEM.
	unshareHarmless = 0x00000100 | 0x00000200 | 0x00000400 | 0x00000800 | 0x00010000 | 0x00040000
)

// syscallRules are in force whenever a session is restricted. Most refusals are
// EPERM, which is what these calls answer anyway to a process without the
// capability, and what the filters of container engines answer: programs know
// it.
var syscallRules = []rule{
	{
		call: "clone3", do: refuse(enosys),
		why: "with CLONE_INTO_CGROUP a process leaves the session's cgroup and outlives it; the flags lie in memory, " +
			"where a filter " +
			"cannot look; libraries take ENOSYS for an old kernel and use clone",
	},
	{call: "io_uring_setup", do: refuse(enosys),
		why: "its operations pass by every filter of system calls; libuv and others go on without"},
	{call: "io_uring_enter", do: refuse(enosys), why: "a ring may have been inherited"},
	{call: "io_uring_register", do: refuse(enosys), why: "a ring may have been inherited"},

	{call: "ioctl", when: []condition{argIs(1, ioctlTIOCSTI)}, do: refuse(eperm),
		why: "types into the terminal for the user"},
	{call: "ioctl", when: []condition{argIs(1, ioctlTIOCLINUX)}, do: refuse(eperm), why: "pastes into a virtual console"},

	{call: "unshare", when: []condition{argHas(0, ^uint64(unshareHarmless))}, do: refuse(eperm),
		why: "namespaces: a user namespace " +
			"gives back every capability inside it, and with them the parts of the kernel that most attacks on it need; " +
			"flags to come too"},
	{call: "clone", when: []condition{argHas(0, cloneNamespaces)}, do: refuse(eperm), why: "namespaces; see unshare"},
	{
		call: "clone", when: []condition{argHas(0, cloneParent)}, do: refuse(eperm),
		why: "the child becomes one of the parent outside, which has to wait for it: thousands of them stay as zombies",
	},
	{call: "setns", do: refuse(eperm), why: "namespaces; see unshare"},

	{
		call: "fcntl", when: []condition{argIs(1, fcntlSetLease)}, do: refuse(eacces),
		why: "a lease on a file that may only be read makes everybody who opens it wait for up to 45 seconds; EACCES is " +
			"the kernel's own " +
			"answer for another user's file",
	},
	{call: "fcntl", when: []condition{argIs(1, fcntlSetDelegation)}, do: refuse(eacces),
		why: "a lease by another name (Linux 6.19)"},
	{call: "fcntl64", when: []condition{argIs(1, fcntlSetLease)}, do: refuse(eacces), why: "see fcntl"},
	{call: "fcntl64", when: []condition{argIs(1, fcntlSetDelegation)}, do: refuse(eacces), why: "see fcntl"},

	{call: "mount", do: refuse(eperm), why: "moves the ground under paths"},
	{call: "umount", do: refuse(eperm), why: "uncovers what a mount hides"},
	{call: "umount2", do: refuse(eperm), why: "uncovers what a mount hides"},
	{call: "pivot_root", do: refuse(eperm), why: "see mount"},
	{call: "open_tree", do: refuse(eperm), why: "see mount"},
	{call: "open_tree_attr", do: refuse(eperm), why: "see mount"},
	{call: "move_mount", do: refuse(eperm), why: "see mount"},
	{call: "fsopen", do: refuse(eperm), why: "see mount"},
	{call: "fsconfig", do: refuse(eperm), why: "see mount"},
	{call: "fsmount", do: refuse(eperm), why: "see mount"},
	{call: "fspick", do: refuse(eperm), why: "see mount"},
	{call: "mount_setattr", do: refuse(eperm), why: "see mount"},
	{call: "open_by_handle_at", do: refuse(eperm), why: "opens by inode number, past every directory"},

	{call: "process_vm_readv", do: refuse(eperm),
		why: "reads another process; debuggers have ptrace, which Landlock keeps inside"},
	{call: "process_vm_writev", do: refuse(eperm), why: "writes to another process; see process_vm_readv"},
	{call: "pidfd_getfd", do: refuse(eperm), why: "takes another process's descriptors"},
	{call: "add_key", do: refuse(eperm), why: "keyrings belong to the user, not to the session"},
	{call: "request_key", do: refuse(eperm), why: "starts a program outside to fetch the key"},
	{call: "keyctl", do: refuse(eperm), why: "keyrings belong to the user, not to the session"},

	{call: "prlimit64", when: []condition{argIs(0, 0)}, do: actionAllow, why: "the process's own limits"},
	{call: "prlimit64", when: []condition{{arg: 2, mask: ^uint64(0)}}, do: actionAllow, why: "reads limits and sets none"},
	{call: "prlimit64", do: refuse(
		eperm), why: "a limit of processor time is a signal: the kernel kills an outside process for the session"},

	{call: "userfaultfd", do: refuse(eperm), why: "stops the kernel in the middle of a copy, which attacks on it rely on"},
	{call: "bpf", do: refuse(eperm), why: "code in the kernel"},
	{call: "perf_event_open", do: refuse(eperm), why: "observes other processes and the kernel"},
	{call: "kexec_load", do: refuse(eperm), why: "another kernel"},
	{call: "kexec_file_load", do: refuse(eperm), why: "another kernel"},
	{call: "init_module", do: refuse(eperm), why: "code in the kernel"},
	{call: "finit_module", do: refuse(eperm), why: "code in the kernel"},
	{call: "delete_module", do: refuse(eperm), why: "takes code out of the kernel"},
	{call: "iopl", do: refuse(eperm), why: "the machine's ports"},
	{call: "ioperm", do: refuse(eperm), why: "the machine's ports"},
	{call: "swapon", do: refuse(eperm), why: "the whole machine's"},
	{call: "swapoff", do: refuse(eperm), why: "the whole machine's"},
	{call: "reboot", do: refuse(eperm), why: "the whole machine's"},
	{call: "acct", do: refuse(eperm), why: "writes a log of all processes to a file of choice"},
	{call: "quotactl", do: refuse(eperm), why: "the whole machine's"},
	{call: "quotactl_fd", do: refuse(eperm), why: "the whole machine's"},
	{call: "lookup_dcookie", do: refuse(eperm), why: "tells paths of other processes; gone since Linux 6.7"},

	{
		call: "socketpair", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "pipes in both directions; they reach nothing",
	},
	{call: "socketpair", do: refuse(eafnosupport), why: "see socket"},
	{
		call: "socketcall", do: refuse(eacces),
		why: "its arguments lie in memory, where a filter cannot look: 32-bit x86 programs that use it instead of socket " +
			"get no sockets",
	},
}

// socketRules are those of a session with network. What they refuse they refuse
// as a kernel built without that family or protocol does, which is what
// programs have a way around: PAM goes on without NETLINK_AUDIT after
// EPROTONOSUPPORT, and fails after EACCES.
var socketRules = []rule{
	{call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "what it may reach is Landlock's to say"},
	{
		call: "socket", when: []condition{argIs(0, familyInet), typeIs(socketPacket)}, do: refuse(eafnosupport),
		why: "AF_PACKET by its oldest name",
	},
	{call: "socket", when: []condition{argIs(0, familyInet)}, do: actionAllow, why: "the network"},
	{call: "socket", when: []condition{argIs(0, familyInet6)}, do: actionAllow, why: "the network"},
	{
		call: "socket", when: []condition{argIs(0, familyNetlink), argIs(2, netlinkRoute)}, do: actionAllow,
		why: "the C library and many others ask it for the machine's addresses",
	},
	{call: "socket", when: []condition{argIs(0, familyNetlink)}, do: refuse(eprotonosupport),
		why: "audit, udev, firewalls and the rest"},
	{
		call: "socket", do: refuse(eafnosupport),
		why: "AF_VSOCK reaches the host of a virtual machine, AF_PACKET every packet; most others are seldom used and " +
			"often attacked",
	},
}

// mediationRules are those of a session whose Unix sockets a supervisor watches
// over; see package sockets. A stream and a connection of packets stay what
// connect(2) has made of them: sendmsg(2) with an address fails or ignores it.
// Datagrams can be addressed one by one, by an address in memory, and also by
// each end of a pair: what is lost without them are log messages to syslog.
var mediationRules = []rule{
	{
		call: "socket", when: []condition{argIs(0, familyUnix), typeIs(socketStream)}, do: actionAllow,
		why: "whom it connects to is asked then",
	},
	{
		call: "socket", when: []condition{argIs(0, familyUnix), typeIs(socketSeqpacket)}, do: actionAllow,
		why: "whom it connects to is asked then",
	},
	{call: "socket", when: []condition{argIs(0, familyUnix)}, do: refuse(eacces),
		why: "datagrams reach any socket, unasked; SOCK_RAW is another name"},
	{
		call: "socketpair", when: []condition{argIs(0, familyUnix), typeIs(socketStream)}, do: actionAllow,
		why: "a pipe in both directions",
	},
	{
		call: "socketpair", when: []condition{argIs(0, familyUnix), typeIs(socketSeqpacket)}, do: actionAllow,
		why: "a pipe in both directions",
	},
	{call: "socketpair", when: []condition{argIs(0, familyUnix)}, do: refuse(eacces),
		why: "sendto with an address leaves the pair"},
	{call: "connect", do: actionNotify, why: "to which socket is in memory, and the descriptor may be changed"},
	{call: "bind", do: actionNotify, why: "the session's own sockets are those that were bound in it"},
}

// offlineRules are those of a session without network. EACCES is what a
// firewall answers, and says "permission denied" to the user whose setting it
// is.
var offlineRules = []rule{
	{call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "what it may reach is Landlock's to say"},
	{call: "socket", do: refuse(eacces), why: "allow_network is false; a new protocol under an old family is refused too"},
}
