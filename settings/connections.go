package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const (
	socketsKey      = "allowed_unix_sockets"
	allowedHostsKey = "allowed_hosts"
	deniedHostsKey  = "denied_hosts"
)

// socket is a resolved entry of allowed_unix_sockets. Its grant has the path
// and the links that were crossed.
type socket struct {
	grant
	abstract string
	agent    policy.Agent // see policy.UnixSocket
	inPlace  bool         // see policy.UnixSocket
}

// named is the socket's unambiguous name.
func (s socket) named() string {
	if s.abstract != "" {
		return "abstract:" + s.abstract
	}
	return s.path
}

// same reports whether both name one socket.
func (s socket) same(other socket) bool { return s.path == other.path && s.abstract == other.abstract }

// socketsOf resolves the entries of one layer.
func socketsOf(view fsView, p project, s *settings, writable cover, r *reporter) []socket {
	from, ok := s.from[socketsKey]
	if !ok {
		return nil
	}
	var list []socket
	for i, text := range s.values.AllowedUnixSockets {
		at := from.element(i)
		found := socket{grant: grant{request: request{text: text, at: at, origin: from.policy(socketsKey, at)}}}
		if name, abstract := strings.CutPrefix(text, "abstract:"); abstract {
			if name == "" || strings.ContainsRune(name, 0) {
				r.add(from.file, at, document.SeverityError, socketsKey,
					"%s: expected a name behind abstract:; the entry does not count", display.Quote(text))
				continue
			}
			found.abstract = name
		} else {
			target, ok := locate(view, p, found.request, r)
			if !ok {
				continue
			}
			found.path, found.links = target.Path, target.Links
			if writable.at(filepath.Dir(found.path)).Has(policy.Write) {
				r.add(from.file, at, document.SeverityInfo, socketsKey,
					"%s lies in a directory that sessions may write: only one that exists at a session's start "+
						"counts",
					display.Quote(text))
			}
		}
		list = append(list, found)
	}
	return slices.DeleteFunc(list, func(s socket) bool {
		rest, _ := dropMovable([]grant{s.grant}, writable, r)
		return len(rest) == 0
	})
}

// meetSockets returns the user's sockets that the project names, too.
func meetSockets(user, project []socket) []socket {
	return slices.DeleteFunc(slices.Clone(user), func(s socket) bool { return !slices.ContainsFunc(project, s.same) })
}

// socketRules turns sockets into the policy's form: sorted, each once.
func socketRules(list []socket) []policy.UnixSocket {
	rules := []policy.UnixSocket{}
	for _, s := range list {
		rules = append(rules, policy.UnixSocket{
			Path: s.path, Abstract: s.abstract, Agent: s.agent, InPlace: s.inPlace, Origin: s.origin,
		})
	}
	slices.SortStableFunc(rules, func(a, b policy.UnixSocket) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Abstract, b.Abstract))
	})
	return slices.CompactFunc(rules, func(a, b policy.UnixSocket) bool {
		return a.Path == b.Path && a.Abstract == b.Abstract
	})
}

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
// hosts means none, those included, and a mistake may have meant that.
func registriesOf(l layers, toolchains []chosen) []host {
	if _, set := l.user.from[allowedHostsKey]; set && len(l.user.values.AllowedHosts) == 0 {
		return nil
	}
	for _, state := range l.states {
		for _, key := range []string{allowedHostsKey, document.KeyOf(l.kind, allowedHostsKey)} {
			if state.Good != nil && state.Good.Unclear(key) || state.Good == nil && state.Problem != nil {
				return nil
			}
		}
	}
	var list []host
	for _, c := range toolchains {
		for _, registry := range c.Registries() {
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
		if !*l.base.AllowNetwork {
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
