package linux

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/seccomp"
)

// report says what a ruleset protects. The ruleset and the filter are in force,
// and their canaries were refused.
func report(r Ruleset, result namespace.Result) map[string]platform.Protection {
	mechanism := fmt.Sprintf("landlock (ABI %d)", r.ABI)
	protections := map[string]platform.Protection{
		platform.Filesystem:      filesystem(r, result, mechanism),
		platform.FileTree:        fileTree(r),
		platform.TemporaryFiles:  temporaryFiles(r),
		platform.HiddenPaths:     hiddenPaths(r),
		platform.ToolchainCaches: toolchainCaches(r),
		platform.Execute: {
			Status: platform.Enforced, Mechanism: mechanism,
			Detail: "programs run only from paths granted for executing; an interpreter or the loader still runs files " +
				"that it can read",
		},
		platform.Network:      networkOff(r),
		platform.NetworkHosts: networkHosts(r),
		platform.UnixSockets:  unixSockets(r, mechanism),
		platform.Signals: byABI(platform.Signals, r.ABI, platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism, Detail: "processes outside the session cannot be signalled",
		}),
		platform.ProtectedPaths: protectedPaths(r, result.Mounts),
		platform.Syscalls: {
			Status: platform.Enforced, Mechanism: "seccomp, no_new_privs, capability bounding set",
			Detail: "calls that lead out of the session or deep into the kernel are refused: io_uring, namespaces, " +
				"mounting, typing into terminals, reading other processes and others; setuid programs gain no rights; " +
				"dangerous capabilities are dropped; " + systemV(r.Namespaces) + "; " + priorities(r) + "; " +
				inotify(r, result),
		},
		platform.Limits:  limits(r, result),
		platform.Denials: reportedDenials(r),
	}
	return protections
}

// filesystem says what Landlock protects of the file system.
func filesystem(r Ruleset, result namespace.Result, mechanism string) platform.Protection {
	files := byABI(platform.Filesystem, r.ABI, platform.Protection{
		Status: platform.Enforced, Mechanism: mechanism,
		Detail: "what is not granted cannot be opened, created, removed, renamed or linked; its existence and metadata " +
			"stay visible",
	})
	if r.Requested.WholeFilesystem {
		files = platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "the settings grant reading everywhere, so a test cannot prove that anything is refused",
			Fix:    `remove "/" from the granted paths`,
		}
	}
	if len(r.Errata) > 0 {
		files.Detail += "; faults of this kernel's Landlock: " + strings.Join(r.Errata, "; ")
	}
	return withTerminals(files, r, result)
}

// toolchainCaches says who uses what the session writes to caches of toolchains.
func toolchainCaches(r Ruleset) platform.Protection {
	const mechanism = "mount namespace, overlayfs"
	switch {
	case !r.Requested.Caches:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "the session writes no cache of a toolchain that must be private",
		}
	case r.CacheGap != "":
		return platform.Protection{
			Status: platform.Absent,
			Detail: "programs outside use what the session writes to caches of toolchains: " + r.CacheGap,
			Fix:    fixOverlays,
		}
	case len(r.LockedCaches) > 0:
		var names []string
		for _, c := range r.LockedCaches {
			names = append(names, fmt.Sprintf("%q (%s)", c.Path, c.Reason))
		}
		return platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "these caches of toolchains are read-only, because they could not be made private: " +
				strings.Join(names[:min(len(names), maxListed)], ", "),
		}
	}
	return platform.Protection{
		Status: platform.Enforced, Mechanism: mechanism,
		Detail: "what the session writes to caches of toolchains is kept for the user's sandboxed sessions; programs " +
			"outside do not see it",
	}
}

const fixOverlays = "use Linux 5.11 or newer with overlayfs and user namespaces, and a file system for " +
	"~/.cache/sandbox-sidecar that can hold overlays, such as ext4, xfs or btrfs"

// temporaryFiles says who shares the session's temporary files.
func temporaryFiles(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Temporary:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "the settings share temporary files with all programs, or grant none",
		}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Degraded, Mechanism: "TMPDIR",
			Detail: "TMPDIR names a directory of the project's own; what is written to /tmp itself is shared with all " +
				"programs: " + r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	}
	return platform.Protection{
		Status: platform.Enforced, Mechanism: "mount namespace",
		Detail: "/tmp, /var/tmp and /dev/shm are the project's own; other programs' files there are not seen",
	}
}

// hiddenPaths says whether paths are hidden.
func hiddenPaths(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Hidden:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true, Detail: "no path within the grants is hidden",
		}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Absent,
			Detail: "hidden paths can be read as far as they lie within the grants: " + r.NamespaceGap,
			Fix:    r.fixNamespaces(),
		}
	}
	return platform.Protection{
		Status: platform.Enforced, Mechanism: "mount namespace",
		Detail: "hidden paths are empty and cannot be changed; a file that a program outside replaces is seen until the " +
			"session ends",
	}
}

// fileTree says whether what is not granted for writing is mounted read-only.
func fileTree(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.FileTree:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "the settings grant writing everywhere, so nothing is mounted read-only",
		}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Absent,
			Detail: "modes, owners, times and extended attributes of the user's files outside the grants can be changed: " +
				r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	}
	return platform.Protection{
		Status: platform.Enforced, Mechanism: "mount namespace",
		Detail: "what is not granted for writing is mounted read-only: modes, owners, times and extended attributes " +
			"cannot be changed either; not so on file systems that are mounted outside later",
	}
}

// reportedDenials says which refusals the sidecar reports.
func reportedDenials(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Denials:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "on_denied is \"ignore\": denials are not reported",
		}
	case r.ObservationGap != "":
		return platform.Protection{
			Status: platform.Absent, Detail: "denials are not reported: " + r.ObservationGap,
			Fix: fixObservation,
		}
	case r.Filtering.Observed == seccomp.ObservedNone || r.Unreported:
		return platform.Protection{Status: platform.Absent, Detail: "no client receives denials"}
	}
	const changes = "denied changes of files, programs, signals and connections are reported, with the setting that " +
		"would allow each"
	p := platform.Protection{
		Status:    platform.Enforced,
		Mechanism: "seccomp (the sidecar inspects calls before the kernel does)",
	}
	if r.Filtering.Observed == seccomp.ObservedNamed {
		p.Status, p.Fix = platform.Degraded, fixNamedReads
		p.Detail = changes + "; " + namedReads
		if r.LogGap != "" {
			p.Detail += "; the kernel's log, which has those, is not read: " + r.LogGap
		}
	} else { // if only changes are observed, the log has the denied reads
		p.Detail = "denied reads, " + strings.TrimPrefix(changes, "denied ")
	}
	switch {
	case r.Logged:
		p.Mechanism = "audit log, " + p.Mechanism
		from := "Unix sockets and signals"
		if r.Filtering.Observed == seccomp.ObservedChanges {
			from = "reads, " + from
		}
		p.Detail += "; denials of " + from + " come from the kernel's log, which drops records under load"
	case r.FS&fsConnect != 0:
		p.Detail += "; denied connections to Unix sockets are not reported"
	}
	if r.Scoped&scopeSignal == 0 {
		p.Detail += "; this kernel does not deny signals"
	}
	return p
}

const (
	fixObservation = "use Linux 5.19 or newer, outside of a container that supervises system calls itself"
	// namedReads says which denied reads are reported with on_denied "report";
	// see docs/design/system-call-filter.md.
	namedReads = "denied reads of files are reported if the path is on the program's command line, as with cat, cp, " +
		"sed, grep and diff, or if the program prints it in an editor's session; not noticed otherwise: paths that a " +
		"program finds or copies itself (shell redirections, less, editors, ssh), files opened close-on-exec (Python, " +
		"Node, Go, Rust) or relative to a directory, and listed directories"
	fixNamedReads = `set on_denied to "ask" to report every denied read; programs that open thousands of files get slower`
)

// withTerminals adds what the session can do with terminals that are not its
// own.
func withTerminals(files platform.Protection, r Ruleset, result namespace.Result) platform.Protection {
	switch {
	case !r.Requested.Terminals:
		files.Detail += "; terminals below /dev/pts can be opened as far as the settings grant them"
	case result.Terminals:
		files.Mechanism += ", own devpts"
		files.Detail += "; /dev/pts has only the session's own terminals"
	default:
		why, fix := result.NoTerminals, ""
		if why == "" {
			why, fix = r.NamespaceGap, "; or "+r.fixNamespaces()
		}
		files.Detail += "; of the terminals in /dev/pts only the session's own can be opened, so programs that open new " +
			"ones fail (tmux, script, ssh -t from inside): " + why
		if files.Fix == "" {
			files.Fix = `add "/dev/pts" to additional_read_write_paths if the session needs new terminals; it can then open ` +
				"all terminals of the user" + fix
		}
	}
	return files
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

// limits says what bounds the session's processes.
func limits(r Ruleset, result namespace.Result) platform.Protection {
	switch {
	case r.Processes == 0:
		return platform.Protection{Status: platform.Absent, NotRequested: true, Detail: "the policy has no limits"}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Absent, Detail: "nothing limits the session's processes: " + r.NamespaceGap,
			Fix: r.fixNamespaces(),
		}
	case !r.Namespaces.User:
		return platform.Protection{
			Status: platform.Absent, Detail: "nothing limits the session's processes: the kernel limits root's nowhere",
			Fix: "start the editor as an ordinary user",
		}
	case result.NoProcessLimit != "":
		return platform.Protection{
			Status: platform.Absent, Detail: "nothing limits the session's processes: " + result.NoProcessLimit,
		}
	}
	return platform.Protection{
		Status: platform.Enforced, Mechanism: "user namespace, RLIMIT_NPROC",
		Detail: fmt.Sprintf("the session has at most %d processes and threads", r.Processes),
	}
}

// byABI lowers a protection to degraded if the kernel's ABI version lacks a part
// of it, or to absent if nothing is left.
func byABI(name string, abi int, whole platform.Protection) platform.Protection {
	var gaps []string
	kernel := ""
	for _, row := range abiVersions {
		if row.protection == name && row.version > abi && row.without != "" {
			gaps = append(gaps, row.without)
			kernel = row.kernel
		}
	}
	if len(gaps) == 0 {
		return whole
	}
	whole.Status = platform.Degraded
	if name == platform.Signals {
		whole.Status, whole.Mechanism = platform.Absent, ""
	}
	whole.Detail = strings.Join(gaps, "; ")
	whole.Fix = fmt.Sprintf("use Linux %s or newer", kernel)
	return whole
}

func unixSockets(r Ruleset, mechanism string) platform.Protection {
	switch {
	case r.FS&fsConnect != 0 && !r.Filtering.Sockets:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism,
			Detail: "only granted sockets of outside processes can be connected to",
		}
	case r.Filtering.Sockets:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "seccomp (the sidecar connects)",
			Detail: "only granted sockets and sockets of the session itself can be connected to; Unix datagram sockets " +
				"cannot be created; servers see the sidecar as the peer",
		}
	case r.Scoped != 0:
		return platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "abstract sockets of outside processes cannot be connected to; those with a path can" +
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

const fixSockets = "use Linux 7.1 or newer, or 5.19 or newer; start containers with --security-opt seccomp=unconfined"

// because appends a reason, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func protectedPaths(r Ruleset, mounts namespace.MountResult) platform.Protection {
	switch {
	case !r.Requested.ProtectedPaths:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "the session has no protected paths",
		}
	case r.Namespaces == nil:
		return platform.Protection{
			Status: platform.Degraded, Mechanism: "tripwire",
			Detail: "changes of protected paths are noticed and reported, and not prevented: " + r.NamespaceGap,
			Fix:    r.fixNamespaces(),
		}
	}
	p := platform.Protection{
		Status: platform.Enforced, PreventsChanges: true, Mechanism: "mount namespace, tripwire",
		Detail: "protected paths are mounted read-only, and the directories above them cannot be renamed",
	}
	switch {
	case len(mounts.Missing) == 0:
	case r.Filtering.Observed != seccomp.ObservedNone:
		// This is a note: nobody can do anything about it, and it is so in every
		// project.
		p.Mechanism += ", seccomp"
		p.Detail += "; these do not exist; creating one is refused; a deliberate race is reported: " + listed(mounts.Missing)
	default:
		p.Status, p.Fix = platform.Degraded, fixObservation
		p.Detail += "; these do not exist; creating one is noticed and reported, and not prevented: " + listed(mounts.Missing)
	}
	if len(mounts.Symlinks) > 0 {
		p.Status = platform.Degraded
		p.Detail += "; these are symlinks or lie behind one, so changes are noticed and reported, and not prevented: " +
			listed(mounts.Symlinks)
		p.Fix = "protect the paths that the symlinks lead to, or replace the symlinks by the files"
	}
	return p
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

// networkHosts says whether the session reaches the allowed hosts, and only
// those.
func networkHosts(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Hosts && r.Filtering.Hosts:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: hostsMechanism(r), NotRequested: true,
			Detail: "the settings do not allow single hosts; the user is asked about each",
		}
	case !r.Requested.Hosts:
		return platform.Protection{
			Status: platform.Absent, NotRequested: true, Detail: "the settings do not allow single hosts",
		}
	case !r.Filtering.Hosts:
		return platform.Protection{
			Status: platform.Absent, Detail: "no host can be reached, not even those of allowed_hosts: " + r.HostsGap,
			Fix: fixHosts + r.fixNamespaces(),
		}
	}
	hosts := platform.Protection{
		Status: platform.Enforced, Mechanism: hostsMechanism(r),
		Detail: "only allowed hosts can be reached, by TCP; other names are not looked up outside; the server's name " +
			"in TLS must be allowed, too; what an allowed host passes on is not checked",
	}
	if r.Filtering.Shared {
		hosts.Detail += "; the session has no localhost of its own, where programs could listen" + because(r.NamespaceGap)
		hosts.Fix = "for localhost: " + r.fixNamespaces()
	}
	return hosts
}

func hostsMechanism(r Ruleset) string {
	if r.Filtering.Shared {
		return "landlock, seccomp (the sidecar connects)"
	}
	return "network namespace, seccomp (the sidecar connects)"
}

const fixHosts = "use Linux 5.19 or newer, outside of a container that supervises system calls itself; "

// networkOff says how the network is cut off.
func networkOff(r Ruleset) platform.Protection {
	switch {
	case !r.Requested.Network:
		return platform.Protection{Status: platform.Absent, NotRequested: true, Detail: "the network is not restricted"}
	case r.Namespaces != nil && r.Namespaces.Network:
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "network namespace, seccomp",
			Detail: "the network has nothing but a loopback interface of the session's own; only Unix, IP and routing " +
				"sockets can be created",
		}
	default:
		why := ""
		if r.NamespaceGap != "" {
			why = " (" + r.NamespaceGap + ")"
		}
		created := "only Unix sockets can be created"
		if r.Filtering.Shared {
			created = "only Unix, routing and TCP sockets can be created; the sidecar connects those of TCP"
		}
		return platform.Protection{
			Status: platform.Enforced, Mechanism: "seccomp",
			Detail: created + "; localhost is off too" + why,
			Fix:    "for localhost: " + r.fixNamespaces(),
		}
	}
}

// absent is the report of a machine that has no Landlock or cannot filter system
// calls.
func absent(cause error) map[string]platform.Protection {
	protections := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			protections[name] = platform.Protection{Status: platform.Absent, Detail: cause.Error(), Fix: fixKernel}
		}
	}
	return protections
}

const fixKernel = `use Linux 5.13 or newer on amd64 or arm64, with Landlock enabled ("landlock" in ` +
	`/sys/kernel/security/lsm; boot parameter lsm=landlock,…) and CONFIG_SECCOMP_FILTER`

// fixNamespaces is the one step that gives this machine's sessions namespaces.
func (r Ruleset) fixNamespaces() string {
	if r.NamespaceFix != "" {
		return r.NamespaceFix
	}
	return anyNamespaceFix
}

// anyNamespaceFix is for a kernel that has namespaces and refuses them to this
// user for a reason that nothing shows.
const anyNamespaceFix = "allow user namespaces; docs/containers.md has the step for each kind of machine"
