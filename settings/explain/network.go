package explain

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// network explains connecting in the network, and waiting for connections.
func (x *explainer) network() {
	rule := &DecidingRule{Origin: x.Policy.Network.Origin}
	if x.Policy.Network.Allowed {
		if x.attempt == Connect && x.toLocalhost() {
			return
		}
		x.allow(rule, "the network is allowed by %s", rule.Origin)
		return
	}
	switch {
	case x.ownLocalhost():
	case x.attempt == Connect:
		if !x.toHost() {
			x.toNoHost("the network is off by %s", rule.Origin)
		}
	default:
		x.refuse(rule, x.WrittenKey(rule.Origin.Key), "true", "the network is off by %s", rule.Origin)
		if x.closedByProject() {
			return
		}
		x.Acts = "that would open the whole network, and servers can listen at 127.0.0.1 or 0.0.0.0 without it"
		x.Hint = "careful: " + x.Acts
	}
}

// decides reports whether somebody decides about each host while the network is
// off. Names are looked up then.
func (x *explainer) decides() bool {
	return x.Policy.Network.ByHost() || x.Policy.OnDenied == policy.Ask
}

// closedByProject explains that the file of a project that is not trusted closes
// the network, if so. No setting of the user's opens it.
func (x *explainer) closedByProject() bool {
	if x.Policy.Network.Origin.File != x.ProjectFile() || x.Trusted() {
		return false
	}
	x.Key, x.Value, x.List = "", "", ""
	x.Hint = fmt.Sprintf("only a change of the project's file %s opens it", display.Quote(x.ProjectFile()))
	if alone := x.WithoutProject(); alone != nil && (alone.Policy.Network.Allowed || alone.Policy.Network.ByHost()) {
		x.Hint = fmt.Sprintf("your own settings allow it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
	}
	return true
}

// singleHosts is the advice for what names no host.
const singleHosts = `"allowed_hosts" opens single hosts, such as "github.com:443"; names are then looked up`

// toNoHost explains a connection that names no host while the network is off: to
// look a name up, to many hosts, or by a socket of which only the family is
// known. An entry for the host is the step, and the host is not known.
func (x *explainer) toNoHost(format string, args ...any) {
	x.refuse(&DecidingRule{Origin: x.Policy.Network.Origin}, "", "", format, args...)
	switch {
	case x.closedByProject():
	case x.decides() && x.standsForName():
		x.Hint = "sessions have it for a name that they looked up: ask about the name"
	case x.decides():
		x.Hint = "single hosts are reached by TCP alone"
	default:
		x.List, x.Hint = allowedHostsKey, singleHosts
	}
}

// entryFor is the entry of allowed_hosts for a target; "" if there is none.
func (x *explainer) entryFor(to hosts.Target) string {
	entry, err := hosts.ParseAllowed(to.String())
	if err != nil {
		return ""
	}
	return entry.String()
}

// toHost explains a connection while the network is off, if the hosts that may
// be reached nevertheless say something about it.
func (x *explainer) toHost() bool {
	text, err := hosts.ParseTarget(x.Target)
	if err != nil {
		return false
	}
	x.Target = text.String()
	whole := text // a denied host is denied whatever is spoken
	whole.Other = false
	if origin, found := x.DeniedHost(whole); found {
		x.refuse(&DecidingRule{Origin: origin}, "", "", "%s is refused by %s", display.Quote(x.Target), origin)
		return true
	}
	if origin, found := x.AllowedHost(text); found {
		x.allow(&DecidingRule{Origin: origin}, "%s may be reached by %s", display.Quote(x.Target), origin)
		x.Hint = "a name must not lead into a private network, unless an entry has its addresses"
		other := text
		other.Other = true
		if _, any := x.AllowedHost(other); !any {
			x.Hint = fmt.Sprintf("only TLS passes at this port; for another protocol add %q to \"allowed_hosts\"",
				x.entryFor(other))
		}
		return true
	}
	entry, err := hosts.ParseAllowed(x.Target)
	if origin, found := x.AllowedHost(whole); found && err == nil {
		x.refuse(&DecidingRule{Origin: origin}, x.WrittenKey(allowedHostsKey), entry.String(),
			"only TLS passes to %s, by %s", display.Quote(whole.String()), origin)
		if alone := x.WithoutProject(); alone != nil && alone.Reaches(entry) {
			x.Key, x.Value = "", ""
			x.Hint = fmt.Sprintf("your own settings allow it; the project's file %s takes it away",
				display.Quote(x.ProjectFile()))
		}
		return true
	}
	return x.toUnlisted(text)
}

// toUnlisted is toHost for a host of which no entry says anything.
func (x *explainer) toUnlisted(text hosts.Target) bool {
	entry, err := hosts.ParseAllowed(x.Target)
	network, alone := x.Policy.Network, x.WithoutProject()
	rule := &DecidingRule{Origin: network.Origin}
	const dns = 53
	server := !text.Named && text.Port == dns
	switch {
	case server && x.decides():
		x.refuse(rule, "", "", "a DNS server is not needed: names are looked up for the session")
		x.Hint = "it can be reached by TCP alone, if an entry of \"allowed_hosts\" has it"
	case server:
		x.toNoHost("no name is looked up, as the network is off by %s", rule.Origin)
	case text.Unreachable() && isThisMachine(text): // on a Mac, which isolates none
		x.toNoHost("%s is this machine's, and the network is off by %s", display.Quote(x.Target), rule.Origin)
		x.Hint = fmt.Sprintf(`for a service of this machine, add "localhost:%d" to "allowed_hosts"`, text.Port)
	case text.Unreachable():
		x.toNoHost("%s is the address of no single host, and the network is off by %s", display.Quote(x.Target),
			rule.Origin)
	case err != nil:
		return false
	case x.closedByProject():
		x.refuse(rule, "", "", "the network is off by %s", rule.Origin)
	case alone != nil && alone.Reaches(entry):
		x.refuse(rule, "", "", "no setting lets a session connect to %s", display.Quote(x.Target))
		x.Hint = fmt.Sprintf("your own settings allow it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
	case network.ByHost():
		x.refuse(rule, x.WrittenKey(allowedHostsKey), entry.String(), "no setting lets a session connect to %s",
			display.Quote(x.Target))
	default:
		x.refuse(rule, x.WrittenKey(allowedHostsKey), entry.String(), "the network is off by %s", rule.Origin)
	}
	switch {
	case x.Key == "":
	case isThisMachine(text):
		x.outside(text)
	case text.Credentials():
		x.Holds = "credentials of this machine"
		x.Hint = "careful: a cloud gives the machine's credentials to whoever connects to such an address"
	}
	return true
}
