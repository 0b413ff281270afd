package settings

import (
	"cmp"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const cachesKey = "toolchain_caches"

// toolchainCaches is "private" if the user or the project says so.
func toolchainCaches(base document.Sandbox, l layers, tightened *settings) document.ToolchainCaches {
	user := *base.ToolchainCaches
	if l.projectSets(cachesKey) && *l.project.values.ToolchainCaches == document.ToolchainCachesPrivate &&
		user != document.ToolchainCachesPrivate {
		tightened.values.ToolchainCaches = new(document.ToolchainCachesPrivate)
		tightened.decide(l, cachesKey)
		return document.ToolchainCachesPrivate
	}
	return user
}

// guardCaches protects the sidecar's cache directory in places that the grants
// open, if the user has toolchains at all: other projects have caches there. It
// must exist to be protected, so create lists it.
func guardCaches(view fsView, l layers, granted cover) (list []policy.Protected, create []string) {
	dir := cacheDir(view.host)
	if view.host.Platform != "linux" || len(l.user.values.Toolchains) == 0 || dir == "" {
		return nil, nil
	}
	dir = view.Resolve(dir).Path
	if !granted.at(dir).Has(policy.Write) {
		return nil, nil
	}
	return []policy.Protected{{
		Path: dir, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: guardKey}, Decides: true,
	}}, []string{dir}
}

// cachesOf lists the caches of toolchains that are private. One that lies in
// another is a part of that. A place that the settings or the project also
// grant for writing, or a part of it, is meant to be written.
func cachesOf(view fsView, granted []grant, value document.ToolchainCaches, r *reporter) []policy.Cache {
	caches := []policy.Cache{}
	if view.host.Platform != "linux" || value == document.ToolchainCachesShared {
		return caches
	}
	list := slices.DeleteFunc(slices.Clone(granted), func(g grant) bool { return !g.cache })
	slices.SortFunc(list, func(a, b grant) int { return cmp.Compare(a.path, b.path) })
	for _, g := range list {
		meant := slices.IndexFunc(granted, func(other grant) bool {
			return !other.cache && !other.private && other.access.Has(policy.Write) &&
				other.origin.File != policy.OriginBuiltIn &&
				(policy.Contains(other.path, g.path) || policy.Contains(g.path, other.path))
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
			caches = append(caches, policy.Cache{Path: g.path, Empty: g.hidden, Origin: g.origin})
		}
	}
	return caches
}
