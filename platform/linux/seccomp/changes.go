package seccomp

// A session in which nothing was written needs no search at its end. So the
// supervisor gets every call that may change a file, or have another
// process change one, by what is in its registers: memory may differ by the time
// the kernel reads it. observationRules have those that take a path and create,
// remove or open something. See docs/design/tripwires-and-review.md.

// AttributeCalls change the mode, owner, times or attributes of a file, and with
// them the time of the inode's last change.
func AttributeCalls() []string { return attributeCalls }

var attributeCalls = []string{
	"chmod", "chown", "chown32", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat", "file_setattr",
	"fremovexattr", "fsetxattr", "futimesat", "lchown", "lchown32", "lremovexattr", "lsetxattr", "removexattr",
	"removexattrat", "setxattr", "setxattrat", "utime", "utimensat", "utimensat_time64", "utimes",
}

// The types of ioctl(2) commands that no file system has: of terminals, and of
// sockets. They make up nearly all.
const (
	ioctlTypeMask              = 0xff00
	ioctlTerminal, ioctlSocket = 0x5400, 0x8900
)

// These commands write only to descriptors that were opened for writing, or
// nothing. Programs that copy files use them. The numbers are the same on all
// architectures that this package knows.
const (
	ioctlFICLONE, ioctlFICLONERANGE, ioctlFIEMAP = 0x40049409, 0x4020940d, 0xc020660b
)

// changeRules send calls that change a file without an open for writing. They
// come last, so that they allow nothing that another rule refuses.
func changeRules() (rules []rule) {
	for _, call := range attributeCalls {
		rules = append(rules, rule{call: call, do: actionNotify, why: "a file may differ afterwards"})
	}
	const harmless = "changes no file that is not open for writing"
	for _, kind := range []uint32{ioctlTerminal, ioctlSocket} {
		rules = append(rules, rule{
			call: "ioctl", when: []condition{maskedArgIs(1, ioctlTypeMask, kind)}, do: actionAllow, why: harmless,
		})
	}
	for _, command := range []uint32{ioctlFICLONE, ioctlFICLONERANGE, ioctlFIEMAP} {
		rules = append(rules, rule{
			call: "ioctl", when: []condition{argIs(1, command)}, do: actionAllow, why: harmless,
		})
	}
	return append(rules, rule{
		call: "ioctl", do: actionNotify, why: "file systems have commands that change files, such as FS_IOC_SETFLAGS",
	})
}

// askedSocketRules are socketRules for a session whose supervisor gets calls for
// sockets that can reach other processes.
func askedSocketRules() (rules []rule) {
	for _, rule := range socketRules {
		inet := len(rule.when) == 1 && (rule.when[0] == argIs(0, familyInet) || rule.when[0] == argIs(0, familyInet6))
		if rule.do == actionAllow && inet {
			rule.do, rule.why = actionNotify, "another process may change a file for the session"
		}
		rules = append(rules, rule)
	}
	return rules
}

// SeesChanges reports whether the supervisor gets every call that may
// change a file.
func (o Observed) SeesChanges() bool { return o == ObservedNamed || o == ObservedAll }
