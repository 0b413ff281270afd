package namespace

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"

// Setup is the namespaces that the stage enters, and what it makes in them,
// before it confines itself. A mount namespace and an IPC namespace are always
// among them.
type Setup struct {
	// User is true if a user namespace gives the rights for the setup.
	// Otherwise the stage runs as root.
	User bool `json:"user,omitempty"`
	// Terminals asks for a /dev/pts of the session's own.
	Terminals bool `json:"terminals,omitempty"`
	// Network is true if there is a network namespace too. The stage starts its
	// loopback interface, and nothing else.
	Network bool `json:"network,omitempty"`
	// Hosts lets the sidecar connect the session to hosts; see package network.
	// It needs Network.
	Hosts bool `json:"hosts,omitempty"`
	// OutsideIPC names the sidecar's IPC namespace. The stage fails if it is in
	// that one.
	OutsideIPC string `json:"outsideIPC,omitempty"`
	// Limits are those of the user namespace, by their names below
	// /proc/sys/user; see sessionLimits.
	Limits map[string]int `json:"limits,omitempty"`
	// Overlays are mounted over the caches of toolchains; nil if there are none.
	Overlays *Overlays `json:"overlays,omitempty"`
	// Tree makes read-only what is not granted for writing; nil if everything
	// is.
	Tree *Tree `json:"tree,omitempty"`
	// Temporary puts directories of the project's own in the place of /tmp and
	// its kin; nil if there are none.
	Temporary *Temporary `json:"temporary,omitempty"`
	// Mounts protect paths of the project.
	Mounts ProtectedMounts `json:"mounts"`
	// Hidden are the paths that the session does not see; nil if there are none.
	Hidden *Hidden `json:"hidden,omitempty"`
}

// Available says which namespaces the stage can be started in on this machine.
type Available struct {
	Mounts, Network bool
	// User is true if that takes a user namespace.
	User bool
	// Gap says what is missing and why; empty if nothing is.
	Gap string
	// Fix is what the user can do about it; empty if that is unknown.
	Fix string
}

// Plan returns the setup of a session that wants terminals of its own, or no
// network, as far as the machine has the namespaces for it. It returns nil if it
// has none. The caller adds the mounts.
func (a Available) Plan(terminals, network bool) *Setup {
	if !a.Mounts {
		return nil
	}
	return &Setup{User: a.User, Terminals: terminals, Network: network && a.Network}
}

// Result says what Enter has made, as far as that is not certain.
type Result struct {
	// Terminals is true if /dev/pts is the session's own.
	Terminals bool
	// NoTerminals says why it is not, although that was planned; else empty.
	NoTerminals string
	// NoLimits says why Setup.Limits are not in force; empty if they are, or if
	// there is no user namespace.
	NoLimits string
	// NoProcessLimit says why the session's processes are not limited; empty if
	// they are, or if there is no user namespace.
	NoProcessLimit string
	Mounts         MountResult
	// Passed are the descriptors that the stage hands over to the sidecar.
	Passed []handshake.PassedFile
}
