package darwin

import (
	"errors"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

const mechanism = "seatbelt"

// report returns what a scene protects, once its profile is in force and its
// canary was denied.
func report(p Scene) map[string]platform.Protection {
	enforced := func(detail string) platform.Protection {
		return platform.Protection{Status: platform.Enforced, Mechanism: mechanism, Detail: detail}
	}
	protections := map[string]platform.Protection{
		platform.Filesystem: enforced("files that are not granted cannot be opened, created, removed, " +
			"renamed or linked; still visible: names in \"/\", symlinks, the metadata of directories above granted " +
			"paths, and the system's libraries"),
		platform.TemporaryFiles: {
			Status: platform.Degraded, Mechanism: "TMPDIR", NotRequested: !p.Requested.Temporary,
			Detail: "TMPDIR names a directory of the project's own; what is written to /tmp itself is " +
				"shared with all programs",
		},
		platform.HiddenPaths: {
			Status: platform.Absent, NotRequested: !p.Requested.Hidden,
			Detail: "macOS shows hidden paths within the grants",
		},
		platform.ToolchainCaches: {
			Status: platform.Absent, NotRequested: !p.Requested.Caches,
			Detail: "macOS has no overlays: programs outside see what sessions write to caches of toolchains",
		},
		platform.FileTree: enforced("modes, owners, times and extended attributes of files that are not granted for " +
			"writing cannot be changed"),
		platform.Execute: enforced("programs run only from paths granted for executing; an interpreter " +
			"still runs the scripts it can read; setuid programs do not run (sudo, ps, top)"),
		platform.Network: enforced("no address can be reached, not even localhost"),
		platform.UnixSockets: enforced("only granted sockets of outside processes can be connected to, and " +
			"only listed Mach services can be looked up"),
		platform.Signals: enforced("processes outside the session cannot be signalled"),
		platform.ProtectedPaths: enforced(
			"protected paths and the directories above them cannot be changed, in upper or lower case"),
		platform.Syscalls: waysOut(p.Dialect.Typing),
		platform.Limits:   {Status: platform.Absent, Detail: "macOS limits processes only for the user as a whole"},
		platform.Denials: {
			Status: platform.Degraded, Mechanism: "system log",
			Detail: "denials are read from the system log, which drops some under load; denied service " +
				"lookups are only in the log, marked " + p.Tag,
		},
	}
	if p.Tag != "" && len(p.Dialect.Modifiers) > 0 {
		protections[platform.Denials] = platform.Protection{
			Status: platform.Absent,
			Detail: "this macOS does not let a profile mark its denials, so they are not found",
		}
	}
	if !p.Requested.Denials {
		protections[platform.Denials] = platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "on_denied is \"ignore\": denials are not reported",
		}
	}
	if !p.Requested.Network {
		protections[platform.Network] = platform.Protection{
			Status: platform.Absent, NotRequested: true,
			Detail: "the network is not restricted; \"localhost\" is not enforced on macOS",
		}
	}
	protections[platform.NetworkHosts] = platform.Protection{
		Status: platform.Absent, NotRequested: !p.Requested.Hosts, Detail: "the settings do not allow single hosts",
	}
	switch {
	case p.Requested.Hosts && p.Proxy == 0:
		protections[platform.NetworkHosts] = platform.Protection{
			Status: platform.Absent, Detail: "no host can be reached, not even those of allowed_hosts: " +
				"there is no proxy",
		}
	case p.Requested.Hosts:
		protections[platform.NetworkHosts] = platform.Protection{
			Status: platform.Enforced, Mechanism: "Seatbelt, proxy",
			Detail: "only allowed hosts can be reached, by programs that use the variables of the " +
				"sidecar's proxy; the server's name in TLS must be allowed, too; what an allowed host passes on " +
				"is not checked",
		}
		protections[platform.Network] = enforced("no address can be reached but the port of the sidecar's proxy")
	}
	if !p.Requested.ProtectedPaths {
		protections[platform.ProtectedPaths] = platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism, NotRequested: true,
			Detail: "the session has no protected paths",
		}
	}
	if len(p.Unkept) > 0 {
		protected := protections[platform.ProtectedPaths]
		protected.Status = platform.Degraded
		protected.Detail += fmt.Sprintf("; these can be created with missing directories, and are reported "+
			"at the end: %q", p.Unkept[:min(len(p.Unkept), maxListed)])
		protections[platform.ProtectedPaths] = protected
	}
	if p.Canary == "" {
		protections[platform.Filesystem] = platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "the settings grant reading everywhere, so a test cannot prove that anything is denied",
			Fix:    `remove "/" from the granted paths`,
		}
	}
	return protections
}

// maxListed bounds the paths that a detail lists.
const maxListed = 20

// absent is the report of a machine on which no profile can be applied.
func absent(cause error) map[string]platform.Protection {
	protections, fix := map[string]platform.Protection{}, fixSandboxed
	if refused := (*refusal)(nil); errors.As(cause, &refused) {
		fix = fixRefused
	}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			protections[name] = platform.Protection{Status: platform.Absent, Detail: cause.Error(), Fix: fix}
		}
	}
	return protections
}

const (
	fixSandboxed = "start the editor outside any sandbox, on macOS 12 or newer"
	fixRefused   = "update sandbox-sidecar or macOS, and report this as a fault"
)
