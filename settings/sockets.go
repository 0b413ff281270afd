package settings

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const socketsKey = "allowed_unix_sockets"

// socket is a resolved entry of allowed_unix_sockets. Its grant has the path
// and the links that were crossed.
type socket struct {
	grant
	abstract string
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
		rules = append(rules, policy.UnixSocket{Path: s.path, Abstract: s.abstract, Origin: s.origin})
	}
	slices.SortStableFunc(rules, func(a, b policy.UnixSocket) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Abstract, b.Abstract))
	})
	return slices.CompactFunc(rules, func(a, b policy.UnixSocket) bool {
		return a.Path == b.Path && a.Abstract == b.Abstract
	})
}
