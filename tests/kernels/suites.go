package main

import "strings"

// suite is a package whose tests run in a guest.
type suite struct {
	pkg string
	// data are directories of the package that its tests read.
	data []string
	// contexts are who runs it in a short run; nil: all but the container.
	contexts []string
	// proves are the tests of a short run; nil: all. They must pass somewhere,
	// with no part skipped. A missing feature is skipped without a failure, so
	// nothing else would show that a kernel has lost what they are about.
	proves []string
}

// order is the suite in the form that a guest reads.
func (s suite) order(short bool) string {
	if !short {
		return s.pkg
	}
	return s.pkg + "@" + strings.Join(s.contexts, "+") + "@" + strings.Join(s.proves, "+")
}

// The contexts of a guest; see its contexts.
const (
	asRoot      = "root"
	asDelegated = "user-delegated"
	asPlain     = "user-plain"
)

// domainTests prove, for sandboxed sessions without a cgroup, that no process
// outlives the processes that end its session.
var domainTests = []string{
	"TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes",
	"TestASandboxedSessionCannotReachTheProcessesThatEndIt",
	"TestAKilledSubreaperAndSidecarLeaveNothingOfASandboxedSession",
}

// A suite runs on those kernels, and in those contexts, where its result
// differs from the others: emulation is slow, and doctor tests every context.
var (
	// attacks are shared among the contexts; see the flag shares.
	attacks = suite{pkg: "tests/attack", data: []string{"attacks"}}
	// launching and confining are about how a sandbox is made, and what it
	// promises.
	launching = suite{pkg: "platform", contexts: []string{asRoot}}
	confining = suite{pkg: "platform/linux", contexts: []string{asRoot}}
	filtering = suite{pkg: "platform/linux/seccomp", data: []string{"testdata"}, contexts: []string{asRoot}}
	isolating = suite{pkg: "platform/linux/namespace", contexts: []string{asRoot}}
	sessions  = suite{pkg: "spawn", contexts: []string{asDelegated}}
	// escaping proves what doctor cannot: that the tracking of processes is
	// degraded.
	escaping = lifetime("TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes")
	// signalDomains also proves that a sandboxed session has its guarantee
	// without a cgroup, from Linux 6.12 on. Fork storms would be slower here
	// than anywhere; the whole suite has them.
	signalDomains = lifetime(domainTests...)
	// limiting proves that a cgroup with controllers limits the memory of sessions,
	// and what happens then.
	limiting = limits([]string{asRoot, asDelegated}, "TestLimits_InACgroupOfTheSidecarsOwn",
		"TestLimits_OfFiftySessionsThatTakeTooMuch")
	// connecting proves that allowed hosts can be reached, and others not.
	connecting = suite{pkg: "tests/hosts", contexts: []string{asRoot, asPlain}, proves: []string{
		"TestConnect_AnswersAsTheNetworkDoes", "TestNames_MustNotLeadIntoPrivateNetworks",
	}}
	// silence proves that sessions do not fill the kernel's audit log, if that is
	// on.
	silence = suite{
		pkg: "tests/denials", contexts: []string{asRoot}, proves: []string{"TestSessionsAreSilentInTheKernelsLog"},
	}
)

// lifetime is that of sessions, as an ordinary user without a cgroup.
func lifetime(proves ...string) suite {
	return suite{pkg: "tests/lifetime", contexts: []string{asPlain}, proves: proves}
}

// limits are what a session may take of the machine.
func limits(contexts []string, proves ...string) suite {
	return suite{pkg: "tests/lifetime", contexts: contexts, proves: proves}
}

// groups is what holds processes together, which does not ask for a sandbox,
// and what else a kernel is to be tried with.
func groups(contexts []string, others ...suite) []suite {
	for _, pkg := range []string{"lifecycle", "lifecycle/cgroup", "lifecycle/subreaper", "lifecycle/signaldomain"} {
		others = append(others, suite{pkg: pkg, contexts: contexts})
	}
	return others
}

// commands are the programs of this module that the tests start.
var commands = []string{"cmd/sandbox-sidecar", "tests/victim", "tests/hosts/victim"}

// programs are those of this machine that the tests start, with the libraries
// that they need.
var programs = []string{
	"awk", "basename", "bash", "cat", "chmod", "chroot", "cp", "cut", "date", "dd", "dirname", "echo", "env", "false",
	"find", "grep", "head",
	"hostname", "id", "ipcmk", "ipcrm", "ipcs", "kill", "link", "ln", "ls", "mkdir", "mkfifo", "mknod",
	"mktemp", "mount", "mv", "nsenter",
	"printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "setpriv", "setsid", "sh", "sleep", "sort", "stat",
	"stty", "sync", "tail",
	"tee", "test", "timeout", "touch", "tr", "true", "truncate", "tty", "umount", "uname", "unlink", "unshare", "wc",
	"xargs", "yes",
	"curl", "git", "git-upload-pack", "python3", "ssh-add", "ssh-agent", "ssh-keygen", "tmux",
}
