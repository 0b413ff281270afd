package explain

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts/loopback"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/route"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// toLocalhost explains a connection to this machine itself while the network is
// on. It reports whether the target is that, and refused or named by an entry.
func (x *explainer) toLocalhost() bool {
	network := x.Policy.Network
	target, err := hosts.ParseTarget(x.Target)
	if err != nil || network.Localhost == policy.LocalhostAll || x.Host.Platform != "linux" || !isThisMachine(target) {
		return false
	}
	entry := hosts.LocalEntry(target.Port)
	names := func(h policy.Host) bool { return h.Pattern == entry }
	if i := slices.IndexFunc(network.LocalHosts, names); i >= 0 {
		origin := network.LocalHosts[i].Origin
		x.allow(&DecidingRule{Origin: origin}, "%s may be reached by %s", display.Quote(x.Target), origin)
		return true
	}
	rule := &DecidingRule{Origin: x.OriginOf(localhostKey)}
	if network.Localhost == policy.LocalhostNone {
		x.refuse(rule, "", "", "no service of this machine is reached, by %s", rule.Origin)
		x.Hint = `with "localhost": "own", entries of "allowed_hosts" such as "` + entry + `" open single ones`
		return true
	}
	x.refuse(rule, x.WrittenKey(allowedHostsKey), entry,
		"on this machine, sessions reach only what those of their project or working tree listen with, by %s",
		rule.Origin)
	if alone := x.WithoutProject(); alone != nil && slices.ContainsFunc(alone.Policy.Network.LocalHosts, names) {
		x.Key, x.Value = "", ""
		x.Hint = fmt.Sprintf("your own settings allow it; the project's file %s takes it away",
			display.Quote(x.ProjectFile()))
		return true
	}
	x.outside(target)
	return true
}

// ownLocalhost explains the loopback interface of a session without the network,
// which is its own. It reports whether the target is there.
func (x *explainer) ownLocalhost() bool {
	host, port, err := x.hostAndPort()
	if err != nil || x.Host.Platform != "linux" || !x.isOwn(host) {
		return false
	}
	x.allow(&DecidingRule{Origin: policy.Origin{File: policy.OriginSession, Key: "a localhost of its own"}},
		"%s is the session's own, as the network is off by %s", display.Quote(x.Target), x.Policy.Network.Origin)
	x.Key, x.own = "", true
	x.Hint = `if this machine can isolate it; "sandbox-sidecar doctor" says if it can`
	if x.attempt == Connect {
		x.Hint = fmt.Sprintf(`if this machine can isolate it; the machine's own is %s:%s, by "localhost:%s" in `+
			`"allowed_hosts"`, hosts.HostName, port, port)
	}
	return true
}

// hostAndPort are those of the target, without a scheme.
func (x *explainer) hostAndPort() (host, port string, err error) {
	if x.attempt == Bind {
		return net.SplitHostPort(x.Target)
	}
	target, err := hosts.ParseTarget(x.Target)
	return target.Host, strconv.Itoa(int(target.Port)), err
}

// isOwn reports whether a host is an address at which a session without the
// network listens to itself alone. Those that stand for names are of no use to
// connect to.
func (x *explainer) isOwn(host string) bool {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host == "localhost" || host == "" && x.attempt == Bind
	}
	addr = addr.Unmap().WithZone("")
	return addr.IsLoopback() || addr.IsUnspecified() ||
		x.attempt == Bind && x.decides() && loopback.Own.Contains(addr)
}

// standsForName reports whether the target is an address that sessions get for
// names.
func (x *explainer) standsForName() bool {
	host, _, err := x.hostAndPort()
	addr, notAddress := netip.ParseAddr(host)
	return err == nil && notAddress == nil && loopback.Own.Contains(addr.Unmap().WithZone(""))
}

// noLocalhost is the advice for who was refused its own localhost.
const noLocalhost = "this machine gives sessions without the network no localhost of its own"

// outside says what a service of this machine is to sessions.
func (x *explainer) outside(target hosts.Target) {
	x.Hint = "it is a service of this machine, outside of the sandbox"
	if who := risks.Obeying[target.Port]; who != "" {
		x.Acts = fmt.Sprintf("%s carries out what whoever connects says", who)
		x.Hint = fmt.Sprintf("careful: %s usually listens there, and carries out what whoever connects says", who)
	}
}

// isThisMachine reports whether a target is an address of this machine.
func isThisMachine(target hosts.Target) bool {
	if target.Named {
		return target.Host == "localhost" || target.Host == hosts.HostName
	}
	addr, err := netip.ParseAddr(target.Host)
	if err != nil {
		return false
	}
	own, err := route.IsOwn(addr)
	return own || err != nil
}
