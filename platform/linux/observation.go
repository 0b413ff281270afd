package linux

// Flags of an opening that changes files: O_WRONLY, O_RDWR, O_CREAT and O_TRUNC, the same numbers on every architecture here.
const openChanges = 0x1 | 0x2 | 0x40 | 0x200

// changingRules send openings that Landlock may refuse, and that are not for reading alone, to who looks at them; see package denials. They come
// first: every opening of a file asks them, and the fewer questions stand before them the less it costs.
var changingRules = []syscallRule{
	{call: "openat", when: []condition{argHas(2, openChanges)}, do: actionNotify, why: "opens for writing, or makes a file"},
	{call: "open", when: []condition{argHas(1, openChanges)}, do: actionNotify, why: "see openat"},
}

// plainRules send, of openings for reading, those by a path alone and without any flag (plainReading). A filter sees no paths, but its arguments
// tell who opens: cat, head, less, cp, dd, sed, ssh, redirections of shells, and what else calls open(2) or fopen(3) for one file it was told
// of. What opens files by the thousand has flags: O_CLOEXEC is the loader's and that of Go, Python, Node and Rust, O_NOCTTY that of grep
// and of compilers for headers, O_NOFOLLOW that of cp -r and of git for .gitignore; grep -r and find come from a directory's descriptor, too.
var plainRules = []syscallRule{
	{call: "openat", when: []condition{plainReading(2), argIs(0, workingDirectory)}, do: actionNotify, why: "is a user's own: cat, cp, less, ssh"},
	{call: "open", when: []condition{plainReading(1)}, do: actionNotify, why: "see openat"},
}

// workingDirectory is AT_FDCWD.
const workingDirectory = 1<<32 - 100

// plainReading holds for flags that are O_RDONLY and nothing else.
func plainReading(flags int) condition { return condition{arg: flags, mask: low, large: true} }

// readingRules send every opening.
var readingRules = []syscallRule{
	{call: "openat", do: actionNotify, why: "reads files too"},
	{call: "open", do: actionNotify, why: "see openat"},
}

// observedCalls are looked at whatever their arguments are. Those of openat2 lie in memory, where a filter cannot look; few programs use it.
var observedCalls = []string{
	"creat", "execve", "execveat", "kill", "link", "linkat", "mkdir", "mkdirat", "mknod", "mknodat", "openat2", "pidfd_send_signal", "rename",
	"renameat", "renameat2", "rmdir", "symlink", "symlinkat", "truncate", "truncate64", "unlink", "unlinkat",
}

var bindRule = syscallRule{call: "bind", do: actionNotify, why: "makes a file of a Unix socket"}

// Those of a network with a loopback interface alone. A message without an address goes where its socket was connected to.
var (
	connectRule = syscallRule{call: "connect", do: actionNotify, why: "elsewhere nobody is reached"}
	sendRule    = syscallRule{call: "sendto", when: []condition{argHas(4, ^uint64(0))}, do: actionNotify, why: "see connect"}
)

// observedOfflineRules are offlineRules, of which a supervisor refuses the sockets, and tells.
var observedOfflineRules = []syscallRule{
	{call: "socket", when: []condition{argIs(0, familyUnix)}, do: actionAllow, why: "what it may reach is Landlock's to say"},
	{call: "socket", do: actionNotify, why: "allow_network is false; the answer is EACCES in any case"},
}

// observationRules are those of the calls that are only looked at. Whatever another rule, or another filter, has to say of them still counts:
// a refusal outweighs a look, and of two rules of one call the first that holds decides, which for all others is the one that asks too.
func (f Filtering) observationRules() []syscallRule {
	if f.Observed == ObservedNot {
		return nil
	}
	var rules []syscallRule
	switch f.Observed {
	case ObservedAll:
		rules = append(rules, readingRules...)
	case ObservedSome:
		rules = append(append(rules, changingRules...), plainRules...)
	default:
		rules = append(rules, changingRules...)
	}
	for _, call := range observedCalls {
		rules = append(rules, syscallRule{call: call, do: actionNotify, why: "Landlock may refuse it"})
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
