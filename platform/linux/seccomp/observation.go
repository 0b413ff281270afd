package seccomp

// openChanges are the flags of an open that can change a file: O_WRONLY,
// O_RDWR, O_CREAT and O_TRUNC. They are the same on all architectures that this
// package knows.
const openChanges = 0x1 | 0x2 | 0x40 | 0x200

// openCreates is O_CREAT, the same on all architectures that this package knows.
const openCreates = 0x40

// creatingRules send every open that can create a file.
var creatingRules = []rule{
	{call: "openat", when: []condition{argHasAny(2, openCreates)}, do: actionNotify, why: "creates a file"},
	{call: "open", when: []condition{argHasAny(1, openCreates)}, do: actionNotify, why: "see openat"},
}

// changingRules send every open that can change a file to the supervisor; see
// package denials. They come first because every open evaluates them: each rule
// before them would make all opens slower.
var changingRules = []rule{
	{
		call: "openat", when: []condition{argHasAny(2, openChanges)}, do: actionNotify,
		why: "opens for writing, or creates a file",
	},
	{call: "open", when: []condition{argHasAny(1, openChanges)}, do: actionNotify, why: "see openat"},
}

// namedRules send opens for reading to the supervisor if the path is probably
// one that the user wrote on the command line: if it is on the process's stack.
// See docs/design/system-call-filter.md.
var namedRules = []rule{
	{
		call: "openat", when: []condition{namedReading(2), argOnStack(1), argIs(0, workingDirectory)}, do: actionNotify,
		why: "a file that the user has named: cat, cp, grep",
	},
	{call: "open", when: []condition{namedReading(1), argOnStack(0)}, do: actionNotify, why: "see openat"},
}

// workingDirectory is AT_FDCWD as an int.
const workingDirectory = 1<<32 - 100

// namedReading holds if the flags are O_RDONLY, with or without O_NOCTTY, which
// grep sets.
func namedReading(flags int) condition {
	return condition{arg: flags, mask: low &^ openNoTerminal, large: true}
}

// openNoTerminal is O_NOCTTY, the same on all architectures that this package
// knows.
const openNoTerminal = 0x100

// readingRules send every open.
var readingRules = []rule{
	{call: "openat", do: actionNotify, why: "reads files too"},
	{call: "open", do: actionNotify, why: "see openat"},
}

// creatingCalls are sent to the supervisor whatever their arguments are. The
// flags of openat2 are in memory, which a filter cannot read; few programs use
// it.
var creatingCalls = []string{
	"creat", "execve", "link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "openat2", "rename", "renameat",
	"renameat2", "symlink", "symlinkat",
}

// changingCalls are those that create nothing.
var changingCalls = []string{
	"execveat", "kill", "pidfd_send_signal", "rmdir", "truncate", "truncate64", "unlink", "unlinkat",
}

// ModeCall changes the mode of a file.
type ModeCall struct {
	Name string
	// Arg is the number of the argument that has the mode.
	Arg int
}

// ModeCalls are the calls that change a mode. If every open is observed, the
// supervisor answers those that set a mark: set-user-id, set-group-id or sticky.
func ModeCalls() []ModeCall {
	return []ModeCall{{"chmod", 1}, {"fchmod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}}
}

// modeMarks are S_ISUID, S_ISGID and S_ISVTX.
const modeMarks = 0o7000

// modeRules send changes of a mode that set a mark.
func modeRules() (rules []rule) {
	for _, one := range ModeCalls() {
		rules = append(rules, rule{
			call: one.Name, when: []condition{argHasAny(one.Arg, modeMarks)}, do: actionNotify,
			why: "a file that an answer opened must get no mark, such as set-user-id",
		})
	}
	return rules
}

var bindRule = rule{call: "bind", do: actionNotify, why: "creates a file for a Unix socket"}

// These rules are for a session whose network has only a loopback interface. A
// message without an address goes to the peer of connect, so it needs no rule.
var (
	connectRule = rule{call: "connect", do: actionNotify, why: "only loopback can be reached"}
	sendRule    = rule{
		call: "sendto", when: []condition{argHasAny(4, ^uint64(0))}, do: actionNotify,
		why: "see connect",
	}
)

// observedOfflineRules are offlineRules for a session whose supervisor refuses
// the sockets and reports that.
var observedOfflineRules = []rule{
	{
		call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "Landlock decides what it may reach",
	},
	{call: "socket", do: actionNotify, why: "allow_network is false; the supervisor always answers EACCES"},
}

// observationRules send calls to a supervisor that inspects them and lets them
// continue. They never allow what another rule refuses: for each call here, the
// other rules allow it or ask the supervisor too. If another filter refuses
// the call, that counts more for the kernel than a notification.
func (f Filtering) observationRules() []rule {
	if f.Observed == ObservedNone {
		return nil
	}
	var rules []rule
	switch f.Observed {
	case ObservedAll:
		rules = append(append(rules, readingRules...), modeRules()...)
	case ObservedCreations:
		rules = append(rules, creatingRules...)
	default:
		rules = append(append(rules, changingRules...), namedRules...)
	}
	for _, call := range creatingCalls {
		rules = append(rules, rule{call: call, do: actionNotify, why: "it may create a protected name, or be refused"})
	}
	if f.Observed != ObservedCreations {
		for _, call := range changingCalls {
			rules = append(rules, rule{call: call, do: actionNotify, why: "Landlock may refuse it"})
		}
	}
	if !f.Sockets { // otherwise mediationRules have both
		rules = append(rules, bindRule)
		if f.Isolated {
			rules = append(rules, connectRule)
		}
	}
	if f.Isolated {
		rules = append(rules, sendRule)
	}
	return rules
}
