package spawn

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// LostGrant is a grant that a session does not have, although its path was there
// when the policy was made.
type LostGrant struct {
	Path string
	// Reason is a clause that says why, without the path.
	Reason string
	Origin policy.Origin
}

// lostGrants are those of the grants without effect that the user would miss, each
// path once. A path that was not there before is none of them, such as a default
// that most machines lack. Nor is one in whose place a session has something else.
func lostGrants(p *policy.Policy, missing []platform.Missing) []LostGrant {
	var lost []LostGrant
	seen := map[string]bool{}
	for _, m := range missing {
		if seen[m.Path] || !p.Present[m.Path] || hasAnother(p, m.Path) {
			continue
		}
		seen[m.Path] = true
		lost = append(lost, LostGrant{Path: m.Path, Reason: m.Reason, Origin: originAt(p, m.Path)})
	}
	return lost
}

// hasAnother reports whether a session has something of its own at a path, or in a
// directory above it: it decides itself what is there.
func hasAnother(p *policy.Policy, path string) bool {
	_, temporary := p.TemporaryAt(path)
	cache, cached := p.CacheAt(path)
	return temporary || cached && cache.Path != path || p.Inside(path) != path
}

// originAt is the origin of the grant of exactly this path.
func originAt(p *policy.Policy, path string) policy.Origin {
	for _, rule := range p.Rules {
		if rule.Path == path {
			return rule.Origin
		}
	}
	for _, socket := range p.UnixSockets {
		if socket.Path == path {
			return socket.Origin
		}
	}
	return policy.Origin{}
}
