package compile

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

const socketsKey = "allowed_unix_sockets"

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
		return risks.AbstractPrefix + s.abstract
	}
	return s.path
}

// namesOf are the names of sockets. A path is absolute, so it is no abstract
// name.
func namesOf(list []socket) map[string]bool {
	names := map[string]bool{}
	for _, s := range list {
		names[s.named()] = true
	}
	return names
}

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
		if name, abstract := strings.CutPrefix(text, risks.AbstractPrefix); abstract {
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
		if view.ownSocket(found) {
			r.add(from.file, at, document.SeverityError, socketsKey,
				"%s leads to a socket of the sidecar's own, which commands sessions; the entry does not count",
				display.Quote(text))
			continue
		}
		list = append(list, found)
	}
	return slices.DeleteFunc(list, func(s socket) bool {
		rest, _ := dropMovable([]grant{s.grant}, writable, r)
		return len(rest) == 0
	})
}

// ownSocket reports whether a socket is one at which the sidecar itself listens, or
// is where such sockets are. Who connects there may start commands in other
// sandboxes, and a session that may connect does so by the sidecar, which is no
// session. A variable such as SSH_AUTH_SOCK, which an entry may name, can be a
// project's.
func (v fsView) ownSocket(s socket) bool {
	return s.abstract == "" && ownSocketAt(v.View, v.host, s.path)
}

func ownSocketAt(view *resolve.View, host resolve.Host, path string) bool {
	return sidecarsOwn(path) || slices.ContainsFunc(stateDirs(host), func(dir string) bool {
		return policy.Contains(view.Resolve(dir).Path, path)
	})
}

// OwnSocket reports whether no setting opens a socket, given its real path, as the
// sidecar listens there.
func (r *Reasons) OwnSocket(path string) bool { return ownSocketAt(r.View, r.Host, path) }

func chooseSockets(
	view fsView, l layers, p project, toolchains []chosen, writable cover, r *reporter,
) []socket {
	list := socketsOf(view, p, &l.user, writable, r)
	for _, s := range toolchainSockets(view, toolchains) {
		if rest, _ := dropMovable([]grant{s.grant}, writable, r); len(rest) > 0 && !view.ownSocket(s) {
			list = append(list, s)
		}
	}
	if l.projectSets(socketsKey) {
		list = meetSockets(list, socketsOf(view, p, l.project, writable, r))
		l.tightened.values.AllowedUnixSockets = []string{}
		for _, s := range list {
			l.tightened.values.AllowedUnixSockets = append(l.tightened.values.AllowedUnixSockets, s.text)
		}
		l.decide(socketsKey)
	}
	return list
}

// meetSockets returns the user's sockets that the project names, too.
func meetSockets(user, project []socket) []socket {
	names := namesOf(project)
	return slices.DeleteFunc(slices.Clone(user), func(s socket) bool { return !names[s.named()] })
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

func (b bounding) sockets(s *settings) {
	if !s.sets(socketsKey) {
		return
	}
	from := s.originOf(socketsKey)
	b.bounds.sockets = &from
	b.setSockets(meetSockets(b.evaluation.sockets, socketsOf(b.view, b.project, s, b.movable, b.reporter)))
	names := []string{}
	for _, socket := range b.evaluation.sockets {
		names = append(names, socket.text)
	}
	b.decides(s, socketsKey, names)
}

func (b bounding) setSockets(list []socket) {
	b.evaluation.sockets, b.policy.UnixSockets = list, socketRules(list)
}

func (b *asker) sockets() {
	alone := namesOf(b.alone.sockets)
	for _, s := range b.e.sockets {
		if s.origin.File == b.e.projectFile && !alone[s.named()] {
			value := s.text
			if s.origin.Key == toolchainsKey {
				value = s.origin.Entry
			}
			means := "with the full power of the program behind it"
			obeys := risks.AtSocket(s.named(), b.e.RealHomes(b.e.host))
			if obeys != "" && s.origin.Key != toolchainsKey {
				means = "and " + obeys
			}
			b.add(s.origin.Key, value, s.at, "sessions may use the socket %s, %s", display.Quote(s.named()), means)
		}
	}
}

func (e *evaluation) diagnoseSockets(r *reporter) {
	variables := policy.NamesOf(e.policy.Environment.Allowed)
	for _, s := range e.sockets {
		file, at := s.origin.File, s.at
		if s.origin.Key == toolchainsKey {
			continue // it brings the variable, and the agent has no other network
		}
		for _, name := range variablesIn(s.text) {
			if !variables.Allows(name) {
				r.add(file, at, document.SeverityWarning, socketsKey,
					"sessions do not get the variable %s, which names the socket; add +%[1]s to allowed_env_vars",
					name)
			}
		}
		if !e.policy.Network.Allowed {
			r.add(file, at, document.SeverityInfo, socketsKey,
				"allow_network is false, but the program behind %s may have a network",
				display.Quote(s.text))
		}
	}
}

// variablesIn lists the variables that an entry names.
func variablesIn(text string) []string {
	var names []string
	for part := range strings.SplitSeq(text, "$") {
		part = strings.TrimPrefix(part, "{")
		name := part[:resolve.NameLength(part)]
		if name != "" && !strings.HasPrefix(text, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
