package compile

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// localhostOrder are the values of "localhost" from the loosest to the
// strictest.
var localhostOrder = []string{
	string(document.LocalhostAll), string(document.LocalhostOwn), string(document.LocalhostNone),
}

// applyLocalhost adds to the policy what a session with the network reaches of
// this machine.
func (e *evaluation) applyLocalhost() {
	network := &e.policy.Network
	network.Localhost, network.LocalhostOf, network.LocalHosts = policy.LocalhostAll, "", nil
	if !network.Allowed {
		return
	}
	switch *e.merged.Localhost {
	case document.LocalhostAll:
		return
	case document.LocalhostNone:
		network.Localhost = policy.LocalhostNone
		return
	}
	network.Localhost, network.LocalhostOf = policy.LocalhostOwn, e.localhostOf()
	list := e.localHosts()
	denied := hosts.Covers(patternsOfHosts(e.hosts.denied))
	list = slices.DeleteFunc(list, func(h host) bool { return denied(h.pattern) })
	if e.hosts.unclear != nil {
		list = nil
	}
	network.LocalHosts = hostRules(list)
}

// localhostOf is the git working tree that the project is in, or the project itself.
// A session that makes a repository in its project only reaches less. One that holds
// a home directory would hold everything, and where everybody may write, such as
// /tmp, anybody could have made it.
func (e *evaluation) localhostOf() string {
	homes := e.RealHomes(e.host)
	for dir := range upwards(e.policy.Project) {
		if slices.ContainsFunc(homes, func(home string) bool { return policy.Contains(dir, home) }) {
			break
		}
		const everybodyWrites = 0o002 // a umask of 002 is usual where each user has a group alone
		if e.Entry(dir).Mode&everybodyWrites != 0 {
			break
		}
		if e.Entry(filepath.Join(dir, ".git")).Err == nil {
			return dir
		}
	}
	return e.policy.Project
}

// localHosts are services of this machine that the settings and the variables of
// proxies name.
func (e *evaluation) localHosts() []host {
	var list []host
	for _, h := range e.hosts.allowed {
		if port := h.pattern.LocalPort(); port != 0 {
			plain, err := hosts.ParseAllowed(hosts.LocalEntry(port)) // without what is to be spoken there
			if err == nil {
				h.pattern = plain
				list = append(list, h)
			}
		}
	}
	for _, name := range document.ProxyVariables {
		port := e.localProxy(e.host.Env[name])
		if port == 0 || risks.Obeying[port] != "" {
			continue // a file of the project may have set the variable
		}
		if pattern, err := hosts.ParseAllowed(hosts.LocalEntry(port)); err == nil {
			list = append(list, host{pattern: pattern, origin: policy.Origin{
				File: policy.OriginBuiltIn, Key: localhostKey, Reason: "the proxy of " + name,
			}})
		}
	}
	return list
}

// localProxy is the port of a proxy at this machine's localhost; 0 if the
// address of a proxy means no such one.
func (e *evaluation) localProxy(text string) uint16 {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		if address, err = url.Parse("http://" + text); err != nil {
			return 0
		}
	}
	if !e.isThisMachine(address.Hostname()) {
		return 0
	}
	digits := address.Port()
	if digits == "" {
		digits = map[string]string{
			"http": "80", "https": "443", "socks4": "1080", "socks4a": "1080", "socks5": "1080", "socks5h": "1080",
		}[address.Scheme]
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(port)
}

// isThisMachine reports whether a name in an address means this machine: its
// localhost, its own name, or an address of one of its interfaces, also as 127.1.
func (e *evaluation) isThisMachine(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if own, err := e.FS.Hostname(); err == nil && own != "" && name == strings.ToLower(own) || e.isLoopback(name) {
		return true
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		addr = addr.Unmap().WithZone("")
		if addr.IsLoopback() || addr.IsUnspecified() {
			return true
		}
		own, err := e.FS.Addresses()
		return err == nil && slices.Contains(own, addr.String())
	}
	return strings.HasPrefix(name, "127.") && strings.Trim(name, "0123456789.") == ""
}

// isLoopback reports whether hosts(5) has the name for an address of the loopback
// interface, as Debian writes the machine's full name.
func (e *evaluation) isLoopback(name string) bool {
	text, err := e.FS.ReadFile("/etc/hosts")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		named := func(field string) bool { return strings.EqualFold(field, name) }
		if err == nil && addr.IsLoopback() && slices.ContainsFunc(fields[1:], named) {
			return true
		}
	}
	return false
}

// withoutLocalhost drops services of this machine that are not allowed already:
// a list closes the network for the rest, but must not open them.
func withoutLocalhost(list, allowed []host, reached document.Localhost) []host {
	if reached == document.LocalhostAll {
		return list
	}
	covers := hosts.Covers(patternsOfHosts(allowed))
	return slices.DeleteFunc(slices.Clone(list), func(h host) bool {
		return h.pattern.LocalPort() != 0 && (reached == document.LocalhostNone || !covers(h.pattern))
	})
}

// onlyLocalhost reports whether the user's list of allowed hosts has nothing but
// services of this machine.
func (e *evaluation) onlyLocalhost() bool {
	for _, text := range e.user.values.AllowedHosts {
		if pattern, err := hosts.ParseAllowed(text); err == nil && pattern.LocalPort() == 0 {
			return false
		}
	}
	return true
}

// uselessLocalhost says why the user's value has no effect; "" if it has.
func (e *evaluation) uselessLocalhost() string {
	if !e.policy.Network.Allowed {
		return "has no effect while allow_network is false: sessions then have a localhost of their own"
	}
	if e.host.Platform != "linux" {
		return "has no effect here: only Linux can tell the services of this machine apart"
	}
	return ""
}

// localhost asks for services of this machine.
func (b *asker) localhost() {
	row := scalar{key: localhostKey, order: localhostOrder}
	reached := b.alone.policy.Network
	if !reached.Allowed {
		return // then the network is asked for, or each host
	}
	if now := b.e.policy.Network; now.Allowed && row.isStricter(&b.alone.merged, &b.e.merged) {
		opens := "sessions may connect to every service of this machine, such as debuggers and databases"
		if now.Localhost != policy.LocalhostAll {
			opens = "sessions may connect to each other's services at this machine's localhost"
		}
		b.addKey(localhostKey, "%s", opens)
	}
	if reached.Localhost == policy.LocalhostAll {
		return
	}
	before := map[string]bool{}
	for _, h := range reached.LocalHosts {
		before[h.Pattern] = true
	}
	for _, h := range b.e.hosts.allowed {
		port := h.pattern.LocalPort()
		counts := !b.e.policy.Network.Allowed || b.e.policy.Network.Localhost == policy.LocalhostOwn
		if port == 0 || !counts || before[hosts.LocalEntry(port)] || h.origin.File != b.e.projectFile {
			continue
		}
		b.add(allowedHostsKey, h.pattern.String(), h.at, "sessions may connect to port %d of this machine", port)
	}
}
