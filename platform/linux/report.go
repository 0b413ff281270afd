package linux

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// report says what a ruleset protects once it and the filter of system calls
// are in force and their canaries were refused.
func report(r Ruleset, result namespace.Result) map[string]platform.Protection {
	mechanism := fmt.Sprintf("landlock (ABI %d)", r.ABI)
	protections := map[string]platform.Protection{
		platform.Filesystem: layered(platform.Filesystem, r.ABI, platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism,
			Detail: "what is not granted cannot be opened, created, removed, renamed or linked; that it exists, and its " +
				"metadata, stays visible",
		}),
		platform.Execute: {
			Status: platform.Enforced, Mechanism: mechanism,
			Detail: "programs run only from where executing is granted; an interpreter or the loader can still run what it " +
				"can read",
		},
		platform.Network:     network(r),
		platform.UnixSockets: unixSockets(r, mechanism),
		platform.Signals: layered(platform.Signals, r.ABI, platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism, Detail: "processes outside the session cannot be signalled",
		}),
		platform.ProtectedPaths: protectedPaths(r, result.Mounts),
		platform.Syscalls: {
			Status: platform.Enforced, Mechanism: "seccomp, no_new_privs, capability bounding set",
			Detail: "calls that lead out of the session or deep into the kernel are refused (io_uring, namespaces, " +
				"mounting, typing into " +
				"terminals, reading other processes …); setuid programs gain nothing; dangerous capabilities are gone; " +
				systemV(r.Namespaces) + "; " + priorities(r) + "; " + inotify(r, result),
		},
		platform.Denials: denied(r),
	}
	if r.Requested.WholeFilesystem {
		protections[platform.Filesystem] = platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "the settings grant reading everywhere, so no canary can prove that anything is refused",
			Fix:    `take "/" out of the granted paths`,
		}
	}
	if files := protections[platform.Filesystem]; len(r.Errata) > 0 {
		files.Detail += "; by faults of this kernel's Landlock: " + strings.Join(r.Errata, "; ")
		protections[platform.Filesystem] = files
	}
	protections[platform.Filesystem] = withTerminals(protections[platform.Filesystem], r, result)
	return protections
}

// denied says who tells what is refused.
func denied(r Ruleset) platform.Protection {
	const seen = "refused changes of files, programs, signals and connections are told, with the setting that would " +
		"allow each"
	p := platform.Protection{Status: platform.Degraded,
		Mechanism: "seccomp (the sidecar looks at calls before the kernel does)"}
	switch {
	case !r.Requested.Denials:
		return platform.Protection{Status: platform.Absent, NotRequested: true,
			Detail: "on_denied is \"ignore\": what is refused only fails"}
	case r.ObservationGap != "":
		return platform.Protection{Status: platform.Absent, Detail: "what is refused only fails: " + r.ObservationGap,
			Fix: fixObservation}
	case r.Filtering.Observed == seccomp.ObservedNone:
		return platform.Protection{Status: platform.Absent, Detail: "nobody listens to what is refused"}
	case r.Filtering.Observed == seccomp.ObservedNamed:
		p.Detail = seen + "; files that are refused for reading are told where a program was given them on its command " +
			"line, as cat, cp, sed, grep " +
			"and diff are, and not told where it finds or copies the name itself: what a shell's redirections, less, " +
			"editors and ssh open, what is " +
			"opened close-on-exec (Python, Node, Go, Rust and its coreutils) or below a directory's descriptor, and " +
			"directories that are listed"
		p.Fix = `set on_denied to "ask": then every opening is looked at, which slows programs down that open thousands`
		if r.LogGap != "" {
			p.Detail += "; the kernel's log, which has them, is not read: " + r.LogGap
		}
	default: // where only changes are looked at, the log has the rest
		p.Status, p.Detail = platform.Enforced, "refused openings of files, "+strings.TrimPrefix(seen, "refused ")
	}
	switch {
	case r.Logged:
		p.Mechanism = "audit log, " + p.Mechanism
		what := "Unix sockets and signals"
		if r.Filtering.Observed == seccomp.ObservedChanges {
			what = "files that are read, " + what
		}
		p.Detail += "; " + what + " are told from the kernel's log, which drops records where too many come at once"
	case r.FS&fsConnect != 0:
		p.Detail += "; Unix sockets that are refused are not told"
	}
	if r.Scoped&scopeSignal == 0 {
		p.Detail += "; signals are not refused on this kernel"
	}
	return p
}

const fixObservation = "use Linux 5.19 or newer, outside of a container that supervises system calls itself"

// withTerminals adds what became of other terminals, which are files of the
// same user.
func withTerminals(files platform.Protection, r Ruleset, result namespace.Result) platform.Protection {
	switch {
	case !r.Requested.Terminals:
		files.Detail += "; terminals below /dev/pts can be opened as far as the settings grant them"
	case result.Terminals:
		files.Mechanism += ", own devpts"
		files.Detail += "; the terminals in /dev/pts are the session's own"
	default:
		why, fix := result.NoTerminals, ""
		if why == "" {
			why, fix = r.NamespaceGap, "; or "+fixNamespaces
		}
		files.Detail += "; of the terminals in /dev/pts only the session's own can be opened, so that programs which " +
			"open new ones (tmux, script, " +
			"ssh -t from inside) fail: " + why
		if files.Fix == "" {
			files.Fix = `put "/dev/pts" into additional_read_write_paths if new terminals are needed more than others need protection` + fix
		}
	}
	return files
}

// systemV says what became of System V IPC.
func systemV(own *namespace.Setup) string {
	if own == nil {
		return "System V IPC is refused, because the session has no IPC namespace of its own"
	}
	return "System V IPC is the session's own"
}

// priorities says whose priorities a session may change.
func priorities(r Ruleset) string {
	if r.Filtering.Priorities {
		return "priorities and processors of outside processes cannot be changed"
	}
	return "no priorities and processors but the calling thread's own can be changed" + because(r.SupervisionGap)
}

// layered lowers a protection to degraded, or to absent where nothing is left
// of it, by what the kernel's ABI version lacks.
func layered(name string, abi int, whole platform.Protection) platform.Protection {
	var lacks []string
	kernel := ""
	for _, row := range abiVersions {
		if row.protection == name && row.version > abi && row.without != "" {
			lacks = append(lacks, row.without)
			kernel = row.kernel
		}
	}
	if len(lacks) == 0 {
		return whole
	}
	whole.Status = platform.Degraded
	if name == platform.Signals {
		whole.Status, whole.Mechanism = platform.Absent, ""
	}
	whole.Detail = strings.Join(lacks, "; ")
	whole.Fix = fmt.Sprintf("use Linux %s or newer", kernel)
	return whole
}

func unixSockets(r Ruleset, mechanism string) platform.Protection {
	switch {
	case r.FS&fsConnect != 0:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism,
			Detail: "only granted sockets of outside processes can be connected to",
		}
	case r.Filtering.Sockets:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "seccomp (the sidecar connects)",
			Detail: "only granted sockets, and those bound in the session itself, can be connected to; Unix sockets for " +
				"datagrams cannot be made; " +
				"servers see the sidecar as who connects",
		}
	case r.Scoped != 0:
		return platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "abstract sockets of outside processes are out of reach; those with a path can be connected to" +
				because(r.MediationGap),
			Fix: fixSockets,
		}
	default:
		return platform.Protection{
			Status: platform.Absent, Detail: "sockets of outside processes can be connected to" +
				because(r.MediationGap), Fix: fixSockets,
		}
	}
}

const fixSockets = "use Linux 7.1 or newer, or 5.19 or newer outside of a container"

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func protectedPaths(r Ruleset, mounts namespace.MountResult) platform.Protection {
	switch {
	case !r.Requested.ProtectedPaths:
		return platform.Protection{Status: platform.Absent, NotRequested: true, Detail: "no path inside the project is protected"}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Degraded, Mechanism: "tripwire",
			Detail: "changes of protected paths are noticed and reported, and not prevented: " + r.NamespaceGap, Fix: fixNamespaces,
		}
	}
	p := platform.Protection{
		Status: platform.Enforced, PreventsChanges: true, Mechanism: "mount namespace, tripwire",
		Detail: "protected paths are mounted read-only, and the directories that lead to them cannot be renamed",
	}
	if len(mounts.Missing) > 0 {
		p.Status = platform.Degraded
		p.Detail += "; these do not exist, and that one is created is noticed and reported, and not prevented: " +
			listed(mounts.Missing)
	}
	if len(mounts.Symlinks) > 0 {
		p.Status = platform.Degraded
		p.Detail += "; these are symlinks, or lie behind one, on which nothing can be mounted, so that they are only " +
			"watched: " + listed(mounts.Symlinks)
		p.Fix = "protect what the symlinks lead to, or put the files themselves there"
	}
	return p
}

// maxListed keeps a detail short enough to be read.
const maxListed = 20

// listed joins quoted paths.
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

func network(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Network:
		return platform.Protection{Status: platform.Absent, NotRequested: true, Detail: "the network is not restricted"}
	case r.Namespaces != nil && r.Namespaces.Network:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "network namespace, seccomp",
			Detail: "there is nothing but a loopback interface of the session's own; only Unix, IP and routing sockets can " +
				"be created",
		}
	default:
		why := ""
		if r.NamespaceGap != "" {
			why = " (" + r.NamespaceGap + ")"
		}
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "seccomp",
			Detail: "nothing but Unix sockets can be created; localhost is off too" + why,
			Fix:    "for localhost: " + fixNamespaces,
		}
	}
}

// absent is the report of a machine without Landlock, or without filters of
// system calls.
func absent(cause error) map[string]platform.Protection {
	protections := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			protections[name] = platform.Protection{Status: platform.Absent, Detail: cause.Error(), Fix: fixKernel}
		}
	}
	return protections
}

const fixKernel = `use Linux 5.13 or newer on amd64 or arm64, with Landlock enabled ("landlock" in /sys/kernel/security/lsm; boot parameter ` +
	`lsm=landlock,…) and CONFIG_SECCOMP_FILTER`

// inotify says how much of the user's inotify a session may take.
func inotify(r Ruleset, result namespace.Result) string {
	switch {
	case r.Namespaces == nil || !r.Namespaces.User:
		return "nothing limits how many of the user's inotify instances it takes, as it has no user namespace"
	case result.NoLimits != "":
		return "nothing limits how many of the user's inotify instances it takes: " + result.NoLimits
	}
	return fmt.Sprintf("it can have %d of the user's inotify instances", r.Namespaces.Limits[namespace.InotifyInstances])
}

// fixNamespaces is for a machine whose kernel has namespaces and refuses them
// to this user.
const fixNamespaces = "let this user make user namespaces: sysctl user.max_user_namespaces and " +
	"kernel.unprivileged_userns_clone; on Ubuntu an " +
	"AppArmor profile with the rule \"userns,\"; in a container a seccomp profile that allows them"
