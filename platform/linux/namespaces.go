package linux

// Own is what the stage makes in the namespaces it was started in, before it
// confines itself. There is always one of mounts and one of System V IPC.
type Own struct {
	// User is true where a user namespace gives the rights for it; otherwise
	// those of root do.
	User bool `json:"user,omitempty"`
	// Terminals asks for a /dev/pts of the session's own.
	Terminals bool `json:"terminals,omitempty"`
	// Network is true where there is a network namespace too, which is to have
	// its loopback interface and nothing else.
	Network bool `json:"network,omitempty"`
	// OutsideIPC names the sidecar's IPC namespace, in which the stage must not
	// be.
	OutsideIPC string `json:"outsideIPC,omitempty"`
	// Limits are those of the user namespace, by their names below
	// /proc/sys/user; see noticeLimits.
	Limits map[string]int `json:"limits,omitempty"`
	// Keep is what is mounted on itself.
	Keep Keep `json:"keep"`
}

// namespaces are those that the stage can be started in on this machine.
type namespaces struct {
	mounts, network bool
	// user is true where that takes a user namespace.
	user bool
	// why says what is missing; empty where nothing is.
	why string
}

// needNamespaces reports whether anything that is asked for takes them.
func (a Asked) needNamespaces() bool { return a.Terminals || a.Network || a.ProtectedPaths }

// plan is what a session needs of them, of which it gets what there is; nil:
// nothing.
func (n namespaces) plan(asked Asked, keep Keep) *Own {
	if !n.mounts || !asked.needNamespaces() {
		return nil
	}
	return &Own{User: n.user, Terminals: asked.Terminals, Network: asked.Network && n.network, Keep: keep}
}

// outcome says what became of a plan, where that is not certain.
type outcome struct {
	// terminals is true where /dev/pts is the session's own.
	terminals bool
	// without says why it is not although that was planned; empty otherwise.
	without string
	// unlimited says why Own.Limits are not in force; empty where they are, or
	// there is no user namespace.
	unlimited string
	kept      kept
}

// fixNamespaces is for a machine that has them and does not let us.
const fixNamespaces = "let this user make user namespaces: sysctl user.max_user_namespaces and " +
	"kernel.unprivileged_userns_clone; on Ubuntu an " +
	"AppArmor profile with the rule \"userns,\"; in a container a seccomp profile that allows them"
