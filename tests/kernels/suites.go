package main

import "strings"

// suite is a package whose tests run in a guest.
type suite struct {
	pkg string
	// data are directories beside the tests that they read.
	data []string
	// contexts are who runs it where time is short; nil: all but the container.
	contexts []string
	// proves are the tests that run where time is short; nil: all. They must
	// pass somewhere, and nothing of them may be skipped: what a machine is
	// known to lack is skipped without a failure, so that nothing else would
	// tell when a kernel has lost what they are about.
	proves []string
}

// order is how a guest is told of it.
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

// domainTests says of sandboxed sessions that have no cgroup that nothing of them
// outlives who is to end them.
var domainTests = []string{
	"TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes",
	"TestASandboxedSessionCannotReachTheProcessesThatEndIt",
	"TestAKilledSubreaperAndSidecarLeaveNothingOfASandboxedSession",
}

// A suite runs on those kernels, and in those contexts, where something in it
// is different from the others: emulation is slow, and what doctor proves it
// proves everywhere.
var (
	// attacks are dealt out to the contexts; see the flag shares.
	attacks = suite{pkg: "tests/attack", data: []string{"attacks"}}
	// launching and confining are how a sandbox is made, and what is promised
	// of it.
	launching = suite{pkg: "platform", contexts: []string{asRoot}}
	confining = suite{pkg: "platform/linux", data: []string{"testdata"}, contexts: []string{asRoot}}
	filtering = suite{pkg: "platform/linux/seccomp", data: []string{"testdata"}, contexts: []string{asRoot}}
	isolating = suite{pkg: "platform/linux/namespace", contexts: []string{asRoot}}
	sessions  = suite{pkg: "spawn", contexts: []string{asDelegated}}
	// escaping proves what doctor cannot: that the tracking of processes is
	// degraded.
	escaping = lifetime("TestAProcessThatKillsItsSubreaperAndTheSidecarEscapes")
	// signalDomains proves, beside that, that a sandboxed session has its guarantee
	// without a cgroup, as from Linux 6.12 on. Processes that try to outrun who
	// ends them would be slower here than anywhere; they are in the whole
	// suite.
	signalDomains = lifetime(domainTests...)
	// logging is that what Landlock refuses is told from the kernel's log,
	// where that is on and can be read.
	logging = suite{pkg: "tests/denials", contexts: []string{asRoot}, proves: []string{"TestTheKernelsAuditLogIsReported"}}
	reading = suite{pkg: "platform/linux/audit", contexts: []string{asRoot}}
)

// lifetime is that of sessions, as an ordinary user without a cgroup.
func lifetime(proves ...string) suite {
	return suite{pkg: "tests/lifetime", contexts: []string{asPlain}, proves: proves}
}

// groups is what holds processes together, which does not ask for a sandbox,
// and what else a kernel is to be tried with.
func groups(contexts []string, others ...suite) []suite {
	for _, pkg := range []string{"lifecycle", "lifecycle/cgroup", "lifecycle/subreaper", "lifecycle/signaldomain"} {
		others = append(others, suite{pkg: pkg, contexts: contexts})
	}
	return others
}

// commands are what the tests start of this module.
var commands = []string{"cmd/sandbox-sidecar", "tests/victim"}

// programs are this machine's that the tests start, with the libraries that
// they need.
var programs = []string{
	"awk", "basename", "bash", "cat", "chmod", "chroot", "cp", "cut", "date", "dd", "dirname", "echo", "env", "false",
	"find", "grep", "head",
	"hostname", "id", "ipcmk", "ipcrm", "ipcs", "kill", "link", "ln", "ls", "mkdir", "mkfifo", "mknod", "mktemp", "mount",
	"mv", "nsenter",
	"printf", "ps", "pwd", "readlink", "rm", "rmdir", "sed", "seq", "setpriv", "setsid", "sh", "sleep", "sort", "stat",
	"stty", "sync", "tail",
	"tee", "test", "timeout", "touch", "tr", "true", "truncate", "tty", "umount", "uname", "unlink", "unshare", "wc",
	"xargs", "yes",
	"curl", "git", "python3", "ssh-add", "ssh-agent", "ssh-keygen", "tmux",
}
