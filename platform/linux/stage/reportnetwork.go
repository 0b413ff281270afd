package stage

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"

// unheld are the keys that do not hold although the protections do not say so.
func unheld(r Ruleset) []string {
	if r.Requested.Localhost && !r.Filtering.Localhost {
		return []string{"localhost"}
	}
	return nil
}

// networkOff says how the network is cut off.
func networkOff(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.Network && r.Filtering.Localhost:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true, Mechanism: "seccomp (the sidecar connects)",
			Detail: "the network is not restricted, but for services of this machine, by TCP: only those that " +
				"\"localhost\" means can be connected to",
		}
	case !r.Requested.Network && r.Requested.Localhost:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true, Fix: r.fixSupervision(),
			Detail: "the network is not restricted; \"localhost\" is not enforced, so every service of this machine " +
				"can be connected to: " + r.LocalhostGap,
		}
	case !r.Requested.Network:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true, Detail: "the network is not restricted",
		}
	case r.Namespaces != nil && r.Namespaces.Network:
		return handshake.Protection{
			Status: handshake.Enforced, Mechanism: "network namespace, seccomp",
			Detail: "the network has nothing but a loopback interface of the session's own; only Unix, IP " +
				"and routing sockets can be created",
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
		return handshake.Protection{
			Status: handshake.Enforced, Mechanism: "seccomp",
			Detail: created + "; localhost is off too" + why,
			Fix:    "for localhost: " + r.fixNamespaces(),
		}
	}
}

// networkHosts says whether the session reaches the allowed hosts, and only
// those.
func networkHosts(r Ruleset) handshake.Protection {
	switch {
	case !r.Requested.Hosts && r.Filtering.Hosts:
		return handshake.Protection{
			Status: handshake.Enforced, Mechanism: hostsMechanism(r), NotRequested: true,
			Detail: "the settings do not allow single hosts; the user is asked about each",
		}
	case !r.Requested.Hosts:
		return handshake.Protection{
			Status: handshake.Absent, NotRequested: true, Detail: "the settings do not allow single hosts",
		}
	case !r.Filtering.Hosts:
		none := handshake.Protection{
			Status: handshake.Absent, Detail: "no host can be reached, not even those of allowed_hosts: " + r.HostsGap,
			Fix: r.fixSupervision(),
		}
		if r.Namespaces == nil && none.Fix != ContainerFix {
			none.Fix += "; " + r.fixNamespaces()
		}
		return none
	}
	hosts := handshake.Protection{
		Status: handshake.Enforced, Mechanism: hostsMechanism(r),
		Detail: "only allowed hosts can be reached, by TCP; other names are not looked up outside; the server's name " +
			"in TLS must be allowed, too; what an allowed host passes on is not checked",
	}
	if r.Filtering.Shared {
		hosts.Detail += "; the session has no localhost of its own, where programs could listen" +
			because(r.NamespaceGap)
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

func unixSockets(r Ruleset, mechanism string) handshake.Protection {
	switch {
	case r.FS&FSConnect != 0 && !r.Filtering.Sockets:
		return handshake.Protection{
			Status: handshake.Enforced, Mechanism: mechanism,
			Detail: "only granted sockets of outside processes can be connected to",
		}
	case r.Filtering.Sockets:
		return handshake.Protection{
			Status: handshake.Enforced, Mechanism: "seccomp (the sidecar connects)",
			Detail: "only granted sockets and sockets of the session itself can be connected to; Unix " +
				"datagram sockets cannot be created; servers see the sidecar as the peer",
		}
	case r.Scoped != 0:
		return handshake.Protection{
			Status: handshake.Degraded, Mechanism: mechanism,
			Detail: "abstract sockets of outside processes cannot be connected to; those with a path can" +
				because(r.MediationGap),
			Fix: r.fixSockets(),
		}
	default:
		return handshake.Protection{
			Status: handshake.Absent, Detail: "sockets of outside processes can be connected to" +
				because(r.MediationGap), Fix: r.fixSockets(),
		}
	}
}

// fixSockets is fixSupervision for sockets, which Landlock can decide about, too.
func (r Ruleset) fixSockets() string {
	if fix := r.fixSupervision(); fix == ContainerFix {
		return fix
	}
	return "use Linux 7.1 or newer, or " + supervising
}
