package compile

import (
	"cmp"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// guardCaches protects the sidecar's cache directory in places that the grants
// open, also if this session has no toolchains: other projects have caches
// there. It must exist to be protected, so create lists it.
func guardCaches(view fsView, granted cover) (list []policy.Protected, create []string) {
	dir := view.host.Places().Cache()
	if view.host.Platform != "linux" || dir == "" {
		return nil, nil
	}
	dir = view.Resolve(dir).Path
	if !granted.at(dir).Has(policy.Write) {
		return nil, nil
	}
	return []policy.Protected{{
		Path: dir, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: GuardKey}, Decides: true,
	}}, []string{dir}
}

// shares reports whether a grant that contains a cache means it, too.
func shares(wider, cache grant) bool {
	return !cache.alwaysPrivate || wider.path == cache.path || wider.origin.File == policy.OriginSession
}

// cachesOf lists the caches of toolchains that are private. One that lies in
// another is a part of that. A place that the settings or the project also
// grant for writing, or a part of it, is meant to be written. A setting that
// grants more than one that no session writes for programs outside does not mean
// that.
// If the organisation requires that they are private, only the session's own
// grants share one.
func cachesOf(view fsView, l layers, granted []grant, r *reporter) []policy.Cache {
	caches := []policy.Cache{}
	if view.host.Platform != "linux" {
		return caches
	}
	private, forced := l.isStrict(cachesKey)
	list := slices.DeleteFunc(slices.Clone(granted), func(g grant) bool {
		return !g.cache || !private && !g.alwaysPrivate
	})
	slices.SortFunc(list, func(a, b grant) int { return cmp.Compare(a.path, b.path) })
	for _, g := range list {
		meant := slices.IndexFunc(granted, func(other grant) bool {
			return !other.cache && !other.private && other.access.Has(policy.Write) &&
				other.origin.File != policy.OriginBuiltIn && (!forced || other.origin.File == policy.OriginSession) &&
				(policy.Contains(g.path, other.path) || policy.Contains(other.path, g.path) && shares(other, g))
		})
		switch {
		case meant >= 0:
			if other := granted[meant]; other.origin.File == policy.OriginSession {
				r.add(g.origin.File, g.at, document.SeverityWarning, toolchainsKey,
					"%s: programs outside use what sessions write to the cache %s, as it is in the project",
					display.Quote(g.text), display.Quote(g.path))
			}
		case slices.ContainsFunc(caches, func(c policy.Cache) bool { return policy.Contains(c.Path, g.path) }):
		default:
			caches = append(caches, policy.Cache{
				Path: g.path, Empty: g.hidden, Always: g.alwaysPrivate, Origin: g.origin,
			})
		}
	}
	return caches
}

// withoutShared leaves out what no session writes for programs outside and is not
// private: no entry means that it may be written.
func withoutShared(granted []grant, private []policy.Cache) []grant {
	return slices.DeleteFunc(slices.Clone(granted), func(g grant) bool {
		within := func(c policy.Cache) bool { return policy.Contains(c.Path, g.path) }
		return g.alwaysPrivate && !slices.ContainsFunc(private, within)
	})
}
