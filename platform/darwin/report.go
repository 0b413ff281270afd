package darwin

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

const mechanism = "seatbelt"

// report says what a scene protects once its profile is in force and its canary
// was refused.
func report(p Scene) map[string]platform.Protection {
	enforced := func(detail string) platform.Protection {
		return platform.Protection{Status: platform.Enforced, Mechanism: mechanism, Detail: detail}
	}
	protections := map[string]platform.Protection{
		platform.Filesystem: enforced("what is not granted cannot be opened, created, removed, renamed or linked; the " +
			"names in \"/\", symlinks, and the " +
			"metadata of directories on the way to what is granted stay visible, and the system's libraries readable"),
		platform.Execute: enforced("programs run only from where executing is granted; an interpreter can still run what " +
			"it can read; " +
			"no setuid program runs (sudo, ps, top)"),
		platform.Network: enforced("no address can be reached, localhost neither"),
		platform.UnixSockets: enforced("only granted sockets of outside processes can be connected to, and only services " +
			"from a list that act for nobody " +
			"can be looked up"),
		platform.Signals: enforced("processes outside the session cannot be signalled"),
		platform.ProtectedPaths: enforced(
			"protected paths, and the directories that lead to them, stay as they are, in whatever case they are written"),
		platform.Syscalls: enforced("what leads out of the session is refused operation by operation: services that " +
			"start programs, other processes' " +
			"memory, typing into terminals, mounting, devices of the kernel; a second sandbox cannot be put on"),
		platform.Denials: {
			Status: platform.Degraded, Mechanism: "system log",
			Detail: "what the system's log delivers is told, which drops some under load; services that cannot be looked up " +
				"are not told, " +
				"and stand in the log, marked " + p.Tag,
		},
	}
	if !p.Asked.Denials {
		protections[platform.Denials] = platform.Protection{Status: platform.Absent, NotRequested: true,
			Detail: "on_denied is \"ignore\": what is refused only fails"}
	}
	if !p.Asked.Network {
		protections[platform.Network] = platform.Protection{Status: platform.Absent, NotRequested: true,
			Detail: "the network is not restricted"}
	}
	if !p.Asked.ProtectedPaths {
		protections[platform.ProtectedPaths] = platform.Protection{
			Status: platform.Enforced, Mechanism: mechanism, NotRequested: true, Detail: "there are none in this session",
		}
	}
	if len(p.Unkept) > 0 {
		protected := protections[platform.ProtectedPaths]
		protected.Status = platform.Degraded
		protected.Detail += fmt.Sprintf("; these lie in directories that do not exist yet, and can be made with them, "+
			"which is told at the session's end: %q",
			p.Unkept[:min(len(p.Unkept), maxListed)])
		protections[platform.ProtectedPaths] = protected
	}
	if p.Canary == "" {
		protections[platform.Filesystem] = platform.Protection{
			Status: platform.Degraded, Mechanism: mechanism,
			Detail: "the settings grant reading everywhere, so no canary can prove that anything is refused",
			Fix:    `take "/" out of the granted paths`,
		}
	}
	return protections
}

// maxListed keeps a detail short enough to be read.
const maxListed = 20

// absent is the report of a machine on which no profile can be put on.
func absent(cause error) map[string]platform.Protection {
	protections := map[string]platform.Protection{}
	for _, name := range platform.Protections {
		if name != platform.ProcessTracking {
			protections[name] = platform.Protection{Status: platform.Absent, Detail: cause.Error(), Fix: fixSandboxed}
		}
	}
	return protections
}

const fixSandboxed = "start the editor outside of any sandbox, on macOS 12 or newer"
