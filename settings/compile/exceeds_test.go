package compile

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// exceeds names something that a policy allows and the other does not; "" if
// there is nothing.
func exceeds(narrow, wide *policy.Policy) string {
	if how := exceedsKind(narrow, wide); how != "" || !wide.Restricted {
		return how
	}
	return exceedsGrants(narrow, wide)
}

// exceedsKind is exceeds for what depends on the kind of session.
func exceedsKind(narrow, wide *policy.Policy) string {
	switch {
	case !wide.Restricted:
		return ""
	case !narrow.Restricted:
		return "it is not restricted"
	case narrow.OnUnavailable == policy.Warn && wide.OnUnavailable == policy.Refuse:
		return "it starts unconfined"
	}
	return ""
}

// exceedsGrants is exceeds for what does not depend on the kind of session.
func exceedsGrants(narrow, wide *policy.Policy) string {
	narrowed, widened := policy.NewIndex(narrow), policy.NewIndex(wide)
	for _, path := range concretePaths(narrow, wide) {
		if more := narrowed.Outside(path) &^ widened.Outside(path); more != 0 {
			return fmt.Sprintf("it grants %s on %s", more, path)
		}
	}
	switch {
	case narrow.Network.Allowed && !wide.Network.Allowed:
		return "it allows the network"
	case exceedsHosts(narrow.Network, wide.Network) != "":
		return exceedsHosts(narrow.Network, wide.Network)
	case narrow.PrivateRuntimeDir && !wide.PrivateRuntimeDir:
		return "it has a runtime directory"
	case narrow.PrivateTerminals && !wide.PrivateTerminals && !wide.At("/dev/pts").Has(policy.Write):
		return "it has terminals"
	case wide.Limits.Processes != 0 &&
		(narrow.Limits.Processes == 0 || narrow.Limits.Processes > wide.Limits.Processes):
		return "it may have more processes"
	case narrow.Limits.Memory.Lower(wide.Limits.Memory) != narrow.Limits.Memory:
		return "it may have more memory"
	case wide.Limits.Connections != 0 &&
		(narrow.Limits.Connections == 0 || narrow.Limits.Connections > wide.Limits.Connections):
		return "connections"
	case wide.Limits.CPUWeight != 0 &&
		(narrow.Limits.CPUWeight == 0 || narrow.Limits.CPUWeight > wide.Limits.CPUWeight):
		return "it may have more of the processor"
	case narrow.OnDenied != wide.OnDenied:
		return "it reacts differently to a denial"
	case narrow.Project != wide.Project:
		return "it is for another project"
	}
	for _, name := range variableNames(narrow, wide) {
		if narrow.Environment.Allows(name) && !wide.Environment.Allows(name) {
			return "it lets " + name + " pass"
		}
	}
	for _, socket := range narrow.UnixSockets {
		if !slices.ContainsFunc(wide.UnixSockets, func(s policy.UnixSocket) bool {
			return s.Path == socket.Path && s.Abstract == socket.Abstract
		}) {
			return fmt.Sprintf("it allows the socket %s%s", socket.Path, socket.Abstract)
		}
	}
	return moreKeys(narrow, wide)
}

// moreKeys names a key that one policy lets sessions use, or use without a
// question, and the other does not; "" if there is none.
func moreKeys(narrow, wide *policy.Policy) string {
	for _, key := range append(slices.Clone(settingstest.SigningKeys), "another") {
		one, is := policy.FindSigningKey(narrow.SigningKeys, key)
		if other, has := policy.FindSigningKey(wide.SigningKeys, key); is && (!has || other.Ask && !one.Ask) {
			return "it allows the key " + key
		}
	}
	return ""
}

// exceedsHosts is exceeds for hosts.
func exceedsHosts(narrow, wide policy.Network) string {
	if wide.Allowed || !narrow.ByHost() {
		return ""
	}
	rules := func(n policy.Network) *hosts.Rules {
		parse := func(list []policy.Host, read func(string) (hosts.Pattern, error)) (patterns []hosts.Pattern) {
			for _, host := range list {
				pattern, err := read(host.Pattern)
				if err != nil {
					panic(err)
				}
				patterns = append(patterns, pattern)
			}
			return patterns
		}
		return hosts.New(parse(n.AllowedHosts, hosts.ParseAllowed), parse(n.DeniedHosts, hosts.ParseDenied))
	}
	a, b := rules(narrow), rules(wide)
	for _, port := range []uint16{0, 1, 2, 3, 443} {
		for _, name := range []string{
			"a.org", "b.a.org", "c.b.a.org", "d.c.b.a.org", "x.a.org", hosts.HostName, "proxy.golang.org",
			"sum.golang.org", "static.crates.io",
		} {
			if a.Name(name, port) && !b.Name(name, port) {
				return fmt.Sprintf("it allows %s:%d", name, port)
			}
		}
		for _, text := range []string{"10.0.0.1", "10.1.0.1", "10.2.0.1"} {
			if addr := netip.MustParseAddr(text); a.Address(addr, port) && !b.Address(addr, port) {
				return fmt.Sprintf("it allows %s, port %d", text, port)
			}
		}
	}
	return ""
}

// concretePaths is a sample. For each path in the policies it has the path
// itself, one below it, a name with the same beginning, and the parents.
func concretePaths(policies ...*policy.Policy) []string {
	paths := map[string]bool{}
	add := func(path string) {
		paths[path+"x"] = true
		for p := range upwards(path) {
			if paths[p] {
				break // and so are its parents
			}
			paths[p], paths[strings.TrimSuffix(p, "/")+"/new"] = true, true
		}
	}
	for _, p := range policies {
		for _, rule := range p.Rules {
			add(rule.Path)
		}
		for _, protected := range p.Protected {
			add(protected.Path)
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// variableNames is a sample with a name for every pattern, and hooks that
// prefixes could match.
func variableNames(policies ...*policy.Policy) []string {
	names := []string{
		"A", "A_B", "A_BC", "AB", "LD_PRELOAD", "LD_X", "LX", "NODE_OPTIONS", "NODE_X", "_X", "PATH",
		"TERM", "HOME", "X",
	}
	for _, p := range policies {
		for _, pattern := range p.Environment.Allowed {
			names = append(names, pattern, pattern+"X", pattern[:len(pattern)-1], pattern[:len(pattern)-1]+"X")
		}
	}
	return names
}
