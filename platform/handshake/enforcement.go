package handshake

import (
	"encoding/json"
	"slices"
)

// The protections, as replies name them.
const (
	Filesystem      = "filesystem"
	FileTree        = "file_tree"
	TemporaryFiles  = "temporary_files"
	HiddenPaths     = "hidden_paths"
	ToolchainCaches = "toolchain_caches"
	Execute         = "execute"
	Network         = "network"
	NetworkHosts    = "network_hosts"
	UnixSockets     = "unix_sockets"
	Signals         = "signals"
	ProtectedPaths  = "protected_paths"
	Syscalls        = "syscalls"
	Limits          = "limits"
	ProcessTracking = "process_tracking"
	Denials         = "denials"
)

// Protections lists every protection in the order of the reference.
var Protections = []string{
	Filesystem, FileTree, TemporaryFiles, HiddenPaths, ToolchainCaches, Execute, Network, NetworkHosts,
	UnixSockets, Signals, ProtectedPaths, Syscalls, Limits, ProcessTracking, Denials,
}

// Status says how far a protection holds.
type Status string

const (
	// Enforced: the kernel denies what the policy does not grant.
	Enforced Status = "enforced"
	// Degraded: the kernel denies a part of it; the detail names the rest.
	Degraded Status = "degraded"
	// Absent: the kernel denies nothing.
	Absent Status = "absent"
)

// Protection says how far one protection holds, by which mechanism, and what
// would improve it.
type Protection struct {
	Status    Status `json:"status"`
	Mechanism string `json:"mechanism"`
	Detail    string `json:"detail"`
	Fix       string `json:"fix,omitempty"`
	// NotRequested is true if the policy does not ask for the protection. It
	// then does not count in Enforcement.Full.
	NotRequested bool `json:"notAsked,omitempty"`
	// PreventsChanges is about ProtectedPaths alone: it is true if the session
	// cannot change those that exist, except symlinks. If Status is Degraded
	// nevertheless, nobody refuses to create the others, or some are symlinks.
	PreventsChanges bool `json:"preventsChanges,omitempty"`
}

// Enforcement is how one process is confined, as the stage reported it.
type Enforcement struct {
	// Protections has an entry for each of Protections except ProcessTracking.
	Protections map[string]Protection `json:"protections"`
	// Missing lists the granted paths that have no effect, because they do not
	// exist or cannot be reached.
	Missing []Missing `json:"missing,omitempty"`
	// Unheld are the keys of settings that do not hold here, of those that share a
	// protection with others: "localhost" and those of "limits".
	Unheld []string `json:"unheld,omitempty"`
	// Warnings are for the user's eyes.
	Warnings []string `json:"warnings,omitempty"`
}

// Missing is a granted path that has no effect.
type Missing struct {
	Path string
	// Reason is a clause for people.
	Reason string
}

// wireMissing is the JSON form of Missing.
type wireMissing struct {
	Path   RawString `json:"path"`
	Reason string    `json:"reason"`
}

// MarshalJSON keeps every byte of the path; see RawString.
func (m Missing) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireMissing{Path: RawString(m.Path), Reason: m.Reason})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Missing) UnmarshalJSON(data []byte) error {
	var wire wireMissing
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	*m = Missing{Path: string(wire.Path), Reason: wire.Reason}
	return nil
}

// Full reports whether every requested protection is enforced.
func (e Enforcement) Full() bool { return len(e.Lacking()) == 0 }

// Lacking returns the requested protections that are not enforced, sorted.
// Denials does not count: what is denied stays denied, reported or not. Nor does
// Limits: a session that takes much reaches nothing that is not granted.
func (e Enforcement) Lacking() []string {
	var lacking []string
	for name, p := range e.Protections {
		if name != Denials && name != Limits && !p.NotRequested && p.Status != Enforced {
			lacking = append(lacking, name)
		}
	}
	slices.Sort(lacking)
	return lacking
}
