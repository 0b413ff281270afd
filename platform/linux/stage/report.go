package stage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// report says what a ruleset protects. The ruleset and the filter are in force,
// and their canaries were refused.
func report(r Ruleset, result namespace.Result) map[string]handshake.Protection {
	mechanism := fmt.Sprintf("landlock (ABI %d)", r.ABI)
	protections := map[string]handshake.Protection{
		handshake.Filesystem:      filesystem(r, result, mechanism),
		handshake.FileTree:        fileTree(r),
		handshake.TemporaryFiles:  temporaryFiles(r),
		handshake.HiddenPaths:     hiddenPaths(r),
		handshake.ToolchainCaches: toolchainCaches(r),
		handshake.Execute: {
			Status: handshake.Enforced, Mechanism: mechanism,
			Detail: "programs run only from paths granted for executing; an interpreter or the loader " +
				"still runs files that it can read",
		},
		handshake.Network:      networkOff(r),
		handshake.NetworkHosts: networkHosts(r),
		handshake.UnixSockets:  unixSockets(r, mechanism),
		handshake.Signals: byABI(handshake.Signals, r.ABI, handshake.Protection{
			Status: handshake.Enforced, Mechanism: mechanism,
			Detail: "processes outside the session cannot be signalled",
		}),
		handshake.ProtectedPaths: protectedPaths(r, result.Mounts),
		handshake.Syscalls: {
			Status: handshake.Enforced, Mechanism: "seccomp, no_new_privs, capability bounding set",
			Detail: "calls that lead out of the session or deep into the kernel are refused: io_uring, namespaces, " +
				"mounting, typing into terminals, reading other processes and others; setuid programs " +
				"gain no rights; dangerous capabilities are dropped; " + systemV(r.Namespaces) + "; " +
				priorities(r) + "; " + inotify(r, result),
		},
		handshake.Limits:  limits(r, result),
		handshake.Denials: reportedDenials(r),
	}
	return protections
}

// byABI lowers a protection to degraded if the kernel's ABI version lacks a part
// of it, or to absent if nothing is left.
func byABI(name string, abi int, whole handshake.Protection) handshake.Protection {
	var gaps []string
	kernel := ""
	for _, row := range abiVersions {
		if row.protection == name && row.version > abi {
			gaps = append(gaps, row.without)
			kernel = row.kernel
		}
	}
	if len(gaps) == 0 {
		return whole
	}
	whole.Status = handshake.Degraded
	if name == handshake.Signals {
		whole.Status, whole.Mechanism = handshake.Absent, ""
	}
	whole.Detail = strings.Join(gaps, "; ")
	whole.Fix = fmt.Sprintf("use Linux %s or newer", kernel)
	return whole
}

// reportedDenials says which refusals the sidecar reports.
func reportedDenials(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.Denials:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true,
			Detail: "on_denied is \"ignore\": denials are not reported",
		}
	case r.ObservationGap != "":
		return handshake.Protection{
			Status: handshake.Absent, Detail: "denials are not reported: " + r.ObservationGap,
			Fix: r.fixSupervision(),
		}
	case r.Filtering.Observed == seccomp.ObservedNone || r.Unreported:
		return handshake.Protection{Status: handshake.Absent, Detail: "no client receives denials"}
	}
	const changes = "denied changes of files, programs, signals and connections are reported, with the setting that " +
		"would allow each"
	p := handshake.Protection{
		Status:    handshake.Enforced,
		Mechanism: "seccomp (the sidecar inspects calls before the kernel does)",
	}
	if r.Filtering.Observed == seccomp.ObservedNamed {
		p.Status, p.Fix = handshake.Degraded, fixNamedReads
		p.Detail = changes + "; " + namedReads
	} else {
		p.Detail = "denied reads, " + strings.TrimPrefix(changes, "denied ")
	}
	if r.FS&FSConnect != 0 {
		p.Detail += "; denied connections to Unix sockets are not reported"
	}
	if r.Scoped&ScopeSignal == 0 {
		p.Detail += "; this kernel does not deny signals"
	}
	return p
}

const (
	// namedReads says which denied reads are reported with on_denied "report";
	// see docs/design/system-call-filter.md.
	namedReads = "denied reads of files are reported if the path is on the program's command line, as with cat, cp, " +
		"sed, grep and diff, or if the program prints it in an editor's session; not noticed otherwise: paths that a " +
		"program finds or copies itself (shell redirections, less, editors, ssh), files opened " +
		"close-on-exec (Python, Node, Go, Rust) or relative to a directory, and listed directories"
	fixNamedReads = `set on_denied to "ask" to report every denied read; ` +
		"programs that open thousands of files get slower"
)

// limits says what bounds the session's processes.
func limits(r Ruleset, result namespace.Result) handshake.Protection {
	switch {
	case r.Processes == 0:
		return handshake.Protection{Status: handshake.Absent, NotRequested: true, Detail: "the policy has no limits"}
	case r.Namespaces == nil:
		return handshake.Protection{
			Status: handshake.Absent, Detail: "nothing limits the session's processes: " + r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	case !r.Namespaces.User:
		return handshake.Protection{
			Status: handshake.Absent,
			Detail: "nothing limits the session's processes: the kernel has no such limit for root",
			Fix:    "start the editor as an ordinary user",
		}
	case result.NoProcessLimit != "":
		return handshake.Protection{
			Status: handshake.Absent, Detail: "nothing limits the session's processes: " + result.NoProcessLimit,
		}
	}
	return handshake.Protection{
		Status: handshake.Enforced, Mechanism: "user namespace, RLIMIT_NPROC",
		Detail: fmt.Sprintf("the session has at most %d processes and threads", r.Processes),
	}
}

// systemV says whether the session can use System V IPC.
func systemV(setup *namespace.Setup) string {
	if setup == nil {
		return "System V IPC is refused, because the session has no IPC namespace of its own"
	}
	return "System V IPC is the session's own"
}

// priorities says whose priorities a session can change.
func priorities(r Ruleset) string {
	if r.Filtering.Priorities {
		return "priorities, processors and limits of outside processes cannot be changed"
	}
	return "only the calling thread's own priority, processors and limits can be changed" + because(r.SupervisionGap)
}

// inotify says how many of the user's inotify instances a session can take.
func inotify(r Ruleset, result namespace.Result) string {
	const unlimited = "nothing limits how many of the user's inotify instances the session takes"
	switch {
	case r.Namespaces == nil || !r.Namespaces.User:
		return unlimited + ", as it has no user namespace"
	case result.NoLimits != "":
		return unlimited + ": " + result.NoLimits
	}
	return fmt.Sprintf("the session can take %d of the user's inotify instances",
		r.Namespaces.Limits[namespace.InotifyInstances])
}

// because appends a reason, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// maxListed bounds the paths that a detail lists.
const maxListed = 20

// listed quotes and joins paths.
func listed(paths []string) string {
	var names []string
	for i, path := range paths {
		if i == maxListed {
			names = append(names, fmt.Sprintf("and %d more", len(paths)-i))
			break
		}
		names = append(names, strconv.Quote(path))
	}
	return strings.Join(names, ", ")
}

// fixNamespaces is the one step that gives this machine's sessions namespaces.
func (r Ruleset) fixNamespaces() string {
	if r.NamespaceFix != "" {
		return r.NamespaceFix
	}
	return anyNamespaceFix
}

// supervising is what lets the sidecar supervise system calls. A container's
// engine may refuse that, or supervise them itself.
const supervising = "5.19 or newer; start a container with --security-opt seccomp=unconfined"

// ContainerFix is the step for a container whose engine refuses namespaces.
const ContainerFix = "start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined"

// fixSupervision is the one step that lets the sidecar supervise system calls. A
// container's engine that refuses namespaces refuses that, too.
func (r Ruleset) fixSupervision() string {
	if r.NamespaceFix == ContainerFix {
		return ContainerFix
	}
	return "use Linux " + supervising
}

// anyNamespaceFix is for a kernel that has namespaces and refuses them to this
// user for a reason that nothing shows.
const anyNamespaceFix = "allow user namespaces; docs/containers.md has the step for each kind of machine"
