package seccomp

// Flags of an opening that changes files: O_WRONLY, O_RDWR, O_CREAT and
// O_TRUNC, the same numbers on every architecture here.
const openChanges = 0x1 | 0x2 | 0x40 | 0x200

// changingRules send openings that Landlock may refuse, and that are not for
// reading alone, to who looks at them; see package denials. They come first:
// every opening of a file asks them, and the fewer questions stand before them
// the less it costs.
var changingRules = []rule{
	{call: "openat", when: []condition{argHas(2, openChanges)}, do: actionNotify,
		why: "opens for writing, or makes a file"},
	{call: "open", when: []condition{argHas(1, openChanges)}, do: actionNotify, why: "see openat"},
}

// namedRules send, of openings for reading, those of what a program's command
// line names. A filter sees no paths, but it sees where they lie: the kernel
// writes a command line to the top of the process's first stack, and what GNU's
// cat, cp, sed, grep, diff and their like are told to open they open by that
// very text. What a program finds out by itself it mostly puts together on its
// heap: the hundreds of files that git or a compiler looks for cost nothing so.
// A path in a local variable is on the stack too, and looked at for nothing, as
// ps does it with what it reads of /proc. Of others the loader, Node and Rust
// are left out by O_CLOEXEC, cp -r by O_NOFOLLOW, grep -r and find by a
// descriptor.
var namedRules = []rule{
	{call: "openat", when: []condition{namedReading(2), argOnStack(1), argIs(0, workingDirectory)}, do: actionNotify,
		why: "is a user's own: cat, cp, grep"},
	{call: "open", when: []condition{namedReading(1), argOnStack(0)}, do: actionNotify, why: "see openat"},
}

// workingDirectory is AT_FDCWD.
const workingDirectory = 1<<32 - 100

// namedReading holds for flags that are O_RDONLY and nothing else but O_NOCTTY,
// which grep has.
func namedReading(flags int) condition {
	return condition{arg: flags, mask: low &^ openNoTerminal, large: true}
}

// openNoTerminal is O_NOCTTY, the same number on every architecture here.
const openNoTerminal = 0x100

// readingRules send every opening.
var readingRules = []rule{
	{call: "openat", do: actionNotify, why: "reads files too"},
	{call: "open", do: actionNotify, why: "see openat"},
}

// observedCalls are looked at whatever their arguments are. Those of openat2
// lie in memory, where a filter cannot look; few programs use it.
var observedCalls = []string{
	"creat", "execve", "execveat", "kill", "link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "openat2",
	"pidfd_send_signal", "rename",
	"renameat", "renameat2", "rmdir", "symlink", "symlinkat", "truncate", "truncate64", "unlink", "unlinkat",
}

var bindRule = rule{call: "bind", do: actionNotify, why: "makes a file of a Unix socket"}

// Those of a network with a loopback interface alone. A message without an
// address goes where its socket was connected to.
var (
	connectRule = rule{call: "connect", do: actionNotify, why: "elsewhere nobody is reached"}
	sendRule    = rule{call: "sendto", when: []condition{argHas(4, ^uint64(0))}, do: actionNotify,
		why: "see connect"}
)

// observedOfflineRules are offlineRules, of which a supervisor refuses the
// sockets, and tells.
var observedOfflineRules = []rule{
	{call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow,
		why: "what it may reach is Landlock's to say"},
	{call: "socket", do: actionNotify, why: "allow_network is false; the answer is EACCES in any case"},
}

// observationRules are those of the calls that are only looked at. Whatever
// another rule, or another filter, has to say of them still counts: a refusal
// outweighs a look, and of two rules of one call the first that holds decides,
// which for all others is the one that asks too.
func (f Filtering) observationRules() []rule {
	if f.Observed == ObservedNone {
		return nil
	}
	var rules []rule
	switch f.Observed {
	case ObservedAll:
		rules = append(rules, readingRules...)
	case ObservedNamed:
		rules = append(append(rules, changingRules...), namedRules...)
	default:
		rules = append(rules, changingRules...)
	}
	for _, call := range observedCalls {
		rules = append(rules, rule{call: call, do: actionNotify, why: "Landlock may refuse it"})
	}
	if !f.Sockets { // else both come anyway
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
