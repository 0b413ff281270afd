package platform

// The protections, as named in replies.
const (
	Filesystem      = "filesystem"
	Execute         = "execute"
	Network         = "network"
	UnixSockets     = "unix_sockets"
	Signals         = "signals"
	ProtectedPaths  = "protected_paths"
	Syscalls        = "syscalls"
	ProcessTracking = "process_tracking"
	Denials         = "denials"
)

// Protections lists every protection in the order of the reference.
var Protections = []string{
	Filesystem, Execute, Network, UnixSockets, Signals, ProtectedPaths, Syscalls, ProcessTracking, Denials,
}

// Status says how far a protection holds.
type Status string

const (
	// Enforced: the kernel refuses what the policy does not grant.
	Enforced Status = "enforced"
	// Degraded: part of it is refused; the detail names the rest.
	Degraded Status = "degraded"
	// Absent: nothing is refused.
	Absent Status = "absent"
)

// Protection says how far one protection holds, by what, and what would make it
// better.
type Protection struct {
	Status    Status `json:"status"`
	Mechanism string `json:"mechanism"`
	Detail    string `json:"detail"`
	Fix       string `json:"fix,omitempty"`
	// NotRequested is true where the policy does not want the protection; it then
	// does not count against the whole.
	NotRequested bool `json:"notAsked,omitempty"`
	// PreventsChanges is about ProtectedPaths alone: it is true if the session
	// cannot change those that exist. If Status is Degraded nevertheless, the
	// others can be created.
	PreventsChanges bool `json:"preventsChanges,omitempty"`
}

// Enforcement is what confines one process, as the stage reported it.
type Enforcement struct {
	// Protections has an entry for each of Protections except ProcessTracking.
	Protections map[string]Protection `json:"protections"`
	// Missing lists the granted paths that could not be granted because they do
	// not exist or cannot be reached.
	Missing []Missing `json:"missing,omitempty"`
	// Warnings are for the user's eyes.
	Warnings []string `json:"warnings,omitempty"`
}

// Missing is a granted path that has no effect.
type Missing struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// Full reports whether every protection that the policy asks for is enforced.
// Denials do not count: what is refused stays refused whether anybody is told
// or not.
func (e Enforcement) Full() bool {
	for name, p := range e.Protections {
		if name != Denials && !p.NotRequested && p.Status != Enforced {
			return false
		}
	}
	return true
}
