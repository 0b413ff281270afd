package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const (
	allowedHostsKey = "allowed_hosts"
	deniedHostsKey  = "denied_hosts"
)

// host is an entry of a list of hosts.
type host struct {
	pattern hosts.Pattern
	at      document.Position
	origin  policy.Origin
}

// hostLists are the hosts that sessions may reach without the network.
type hostLists struct {
	allowed, denied []host
	// unclear is an entry of denied_hosts that could not be understood; nil if
	// there is none. Nothing is allowed then: the entry may have meant any of
	// the hosts.
	unclear *document.FileDiagnostic
}

// hostsOf reads the entries of one layer. unclear is the first that could not be
// understood.
func hostsOf(
	s *settings, key string, parse func(string) (hosts.Pattern, error), r *reporter,
) (list []host, unclear *document.FileDiagnostic) {
	from := s.from[key]
	for i, text := range s.values.List(key) {
		at := from.element(i)
		pattern, err := parse(text)
		if err == nil {
			list = append(list, host{pattern: pattern, at: at, origin: from.policy(key, at)})
			continue
		}
		r.add(from.file, at, document.SeverityError, key, "%s: %v; the entry does not count", display.Quote(text), err)
		if unclear == nil {
			unclear = &document.FileDiagnostic{File: from.file, Diagnostic: document.Diagnostic{
				Line: at.Line, Column: at.Column, Severity: document.SeverityError, Key: key,
				Message: display.Quote(text) + ": " + err.Error(),
			}}
		}
	}
	return list, unclear
}

// registriesOf are the hosts that toolchains bring. An empty list of allowed
// hosts means none, those included, but for the agent of the command line. A
// mistake may have meant that.
func registriesOf(l layers, toolchains []chosen) []host {
	_, set := l.user.from[allowedHostsKey]
	none := set && len(l.user.values.AllowedHosts) == 0
	for _, state := range l.states {
		for _, key := range []string{allowedHostsKey, document.KeyOf(l.kind, allowedHostsKey)} {
			if state.Good != nil && state.Good.Unclear(key) || state.Good == nil && state.Problem != nil {
				return nil
			}
		}
	}
	var list []host
	for _, c := range toolchains {
		if none && c.agent == nil {
			continue
		}
		for _, registry := range c.hosts() {
			pattern, err := hosts.ParseAllowed(registry.Host)
			if err != nil {
				panic(fmt.Sprintf("BUG(sandbox-sidecar): host %q of %s: %v", registry.Host, c.Name, err))
			}
			origin := c.origin
			origin.Reason = registry.Why
			list = append(list, host{pattern: pattern, at: c.at, origin: origin})
		}
	}
	return list
}

// ofToolchain reports whether a toolchain brings the host.
func (h host) ofToolchain() bool { return h.origin.Key == toolchainsKey }

// chooseHosts lets an untrusted project's file add denied hosts, and take
// allowed ones away. If the user allows the whole network, all that the file
// lists is less.
func chooseHosts(
	l layers, toolchains []chosen, r *reporter,
) hostLists {
	var lists hostLists
	lists.allowed, _ = hostsOf(&l.user, allowedHostsKey, hosts.ParseAllowed, r)
	lists.allowed = append(lists.allowed, registriesOf(l, toolchains)...)
	lists.denied, lists.unclear = hostsOf(&l.user, deniedHostsKey, hosts.ParseDenied, r)
	if l.projectSets(allowedHostsKey) {
		both, _ := hostsOf(l.project, allowedHostsKey, hosts.ParseAllowed, r)
		if *l.base.AllowNetwork {
			both = withoutLocalhost(both, lists.allowed, *l.base.Localhost)
		} else {
			both = meetHosts(lists.allowed, both, l.project.originOf(allowedHostsKey))
		}
		lists.allowed = both
		l.tightened.values.AllowedHosts = hostTexts(both)
		l.decide(allowedHostsKey)
	}
	if l.projectSets(deniedHostsKey) {
		more, unclear := hostsOf(l.project, deniedHostsKey, hosts.ParseDenied, r)
		lists.denied, lists.unclear = append(lists.denied, more...), cmp.Or(lists.unclear, unclear)
		l.tightened.values.DeniedHosts = hostTexts(lists.denied)
		l.decide(deniedHostsKey)
	}
	if lists.unclear != nil {
		lists.allowed = nil
	}
	return lists
}

// network is what both allow.
func (l layers) network() policy.Network {
	both := l.values()
	return policy.Network{Allowed: *both.AllowNetwork, Origin: l.originOf(networkKey)}
}

// meetHosts returns what both lists allow. What neither says in these words has
// the origin given.
func meetHosts(user, project []host, origin policy.Origin) []host {
	written := map[hosts.Pattern]host{}
	for _, h := range slices.Concat(user, project) {
		written[h.pattern] = h // the project's counts more
	}
	var met []host
	for _, pattern := range hosts.Meet(patternsOfHosts(user), patternsOfHosts(project)) {
		found, is := written[pattern]
		if !is {
			found = host{pattern: pattern, origin: origin}
		}
		met = append(met, found)
	}
	return met
}

func patternsOfHosts(list []host) []hosts.Pattern {
	var patterns []hosts.Pattern
	for _, h := range list {
		patterns = append(patterns, h.pattern)
	}
	return patterns
}

func hostTexts(list []host) []string {
	texts := []string{}
	for _, h := range list {
		texts = append(texts, h.pattern.String())
	}
	return texts
}

// addTo adds the lists to the policy of a network that is off: sorted, each
// entry once.
func (lists hostLists) addTo(network policy.Network) policy.Network {
	if !network.Allowed {
		network.AllowedHosts, network.DeniedHosts = hostRules(lists.allowed), hostRules(lists.denied)
	}
	return network
}

func hostRules(list []host) []policy.Host {
	var rules []policy.Host
	for _, h := range list {
		rules = append(rules, policy.Host{Pattern: h.pattern.String(), Origin: h.origin})
	}
	slices.SortStableFunc(rules, func(a, b policy.Host) int { return cmp.Compare(a.Pattern, b.Pattern) })
	return slices.CompactFunc(rules, func(a, b policy.Host) bool { return a.Pattern == b.Pattern })
}

// reaches returns a function that reports whether an evaluation lets sessions
// reach all hosts of a pattern.
func (e *evaluation) reaches() func(hosts.Pattern) bool {
	covers := hosts.Covers(patternsOfHosts(e.hosts.allowed))
	return func(pattern hosts.Pattern) bool { return e.policy.Network.Allowed || covers(pattern) }
}

// network closes the network if the file says so, or if it lists hosts, which
// have an effect only then.
func (b bounding) network(s *settings) {
	closed := s.values.AllowNetwork != nil && !*s.values.AllowNetwork
	if !closed && !s.sets(allowedHostsKey, deniedHostsKey) {
		return
	}
	deciding := networkKey
	for _, other := range []string{allowedHostsKey, deniedHostsKey} {
		if !closed && s.sets(other) {
			deciding, closed = other, false
			break
		}
	}
	from := s.originOf(deciding)
	b.bounds.network = &from
	wasOpen := b.policy.Network.Allowed
	if wasOpen {
		b.policy.Network = policy.Network{Origin: from}
		b.bounds.from[networkKey], b.origins[networkKey] = s.from[deciding], s.from[deciding].file
		b.merged.AllowNetwork = new(false)
	}
	switch {
	case s.sets(allowedHostsKey):
		list, _ := hostsOf(s, allowedHostsKey, hosts.ParseAllowed, b.reporter)
		if wasOpen {
			list = withoutLocalhost(list, b.hosts.allowed, *b.merged.Localhost)
		} else {
			list = meetHosts(b.hosts.allowed, list, s.originOf(allowedHostsKey))
		}
		b.hosts.allowed = list
		b.decides(s, allowedHostsKey, hostTexts(list))
	case closed: // the whole network is meant
		b.hosts.allowed = nil
		b.bounds.from[allowedHostsKey], b.origins[allowedHostsKey] = s.from[networkKey], s.from[networkKey].file
		b.merged.AllowedHosts = []string{}
	}
	if s.sets(deniedHostsKey) {
		more, unclear := hostsOf(s, deniedHostsKey, hosts.ParseDenied, b.reporter)
		b.refuse(unclear)
		b.hosts.denied = append(slices.Clone(b.hosts.denied), more...)
		b.decides(s, deniedHostsKey, hostTexts(b.hosts.denied))
	}
	if b.hosts.unclear != nil {
		b.hosts.allowed = nil
	}
	b.policy.Network.AllowedHosts, b.policy.Network.DeniedHosts = nil, nil
	b.policy.Network = b.hosts.addTo(b.policy.Network)
}

// hosts asks for hosts that sessions reach while the network is off.
func (b *asker) hosts() {
	if b.e.policy.Network.Allowed || b.alone.policy.Network.Allowed {
		return
	}
	const opens = "sessions may connect to %s, and send there what they can read"
	var others []string
	key := deniedHostsKey
	reached := b.alone.reaches()
	for _, h := range b.e.hosts.allowed {
		switch name := display.Quote(h.pattern.String()); {
		case reached(h.pattern):
		case h.ofToolchain() && h.origin.File == b.e.projectFile: // the toolchain is asked for
		case h.ofToolchain() && b.projects(allowedHostsKey): // which replaces the user's empty list
			others, key = append(others, name), allowedHostsKey
		case h.origin.File == b.e.projectFile:
			b.add(allowedHostsKey, h.pattern.String(), h.at, opens, name)
		default:
			others = append(others, name)
		}
	}
	denied := hosts.Covers(patternsOfHosts(b.e.hosts.denied))
	for _, h := range b.alone.hosts.denied {
		if !denied(h.pattern) {
			others = append(others, display.Quote(h.pattern.String()))
		}
	}
	if len(others) > 0 {
		const most = 4
		if more := len(others) - most; more > 0 {
			others = append(others[:most], fmt.Sprintf("%d more", more))
		}
		b.addKey(key, opens, strings.Join(others, ", "))
	}
}

// diagnoseHosts finds lists of hosts without effect.
func (e *evaluation) diagnoseHosts(r *reporter) {
	for _, key := range []string{allowedHostsKey, deniedHostsKey} {
		own := e.policy.Network.Localhost == policy.LocalhostOwn
		from, set := e.user.from[key]
		switch {
		case !set || len(e.user.values.List(key)) == 0:
		case own && key == allowedHostsKey && !e.onlyLocalhost():
			r.add(from.file, from.At, document.SeverityWarning, key,
				"has no effect while allow_network is true, but for localhost: sessions reach every host")
		case own && key == allowedHostsKey:
		case e.policy.Network.Allowed:
			r.add(from.file, from.At, document.SeverityWarning, key,
				"has no effect while allow_network is true: sessions reach every host")
		case key == allowedHostsKey && e.hostsGap != nil && e.hostsGap() != "":
			r.add(from.file, from.At, document.SeverityWarning, key,
				"this machine cannot tell hosts apart, so sessions have no network: %s", e.hostsGap())
		case e.host.Platform == "darwin":
			r.add(from.file, from.At, document.SeverityInfo, key,
				"on macOS, only programs that use the proxy variables reach allowed hosts")
		}
	}
	denied := hosts.Covers(patternsOfHosts(e.hosts.denied))
	for _, h := range e.hosts.allowed {
		if !e.policy.Network.Allowed && denied(h.pattern) && h.origin.File != policy.OriginBuiltIn && !h.ofToolchain() {
			r.add(h.origin.File, h.at, document.SeverityWarning, allowedHostsKey, "%s is refused by denied_hosts",
				display.Quote(h.pattern.String()))
		}
	}
}
