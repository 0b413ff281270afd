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
	if x.attempt == Connect && x.toHost() {
		return
	}
	x.refuse(rule, x.WrittenKey(rule.Origin.Key), "true", "the network is off by %s", rule.Origin)
	if rule.Origin.File == x.ProjectFile() && !x.Trusted() {
		x.Key, x.Value = "", ""
	}
	x.Hint = "servers and clients within a session can use the loopback interface if the machine can isolate it"
	if x.Key != "" && x.attempt == Connect && !x.Policy.Network.ByHost() {
		x.Hint = `"allowed_hosts" opens single hosts instead, such as "github.com"`
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
	decides, server := network.ByHost() || x.Policy.OnDenied == policy.Ask, !text.Named && text.Port == dns
	switch {
	case decides && server:
		x.refuse(rule, "", "", "a DNS server is not needed: names are looked up for the session")
		x.Hint = "it can be reached by TCP alone, if an entry of \"allowed_hosts\" has it"
	case decides && text.Unreachable():
		x.refuse(rule, "", "", "%s is the session's own, or no host's", display.Quote(x.Target))
		x.Hint = fmt.Sprintf(`for a service of this machine, add "localhost:%d" to "allowed_hosts"`, text.Port)
	case err != nil || network.Origin.File == x.ProjectFile() && !x.Trusted() ||
		!decides && (server || text.Unreachable()):
		return false // without hosts nobody looks names up for the session
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
