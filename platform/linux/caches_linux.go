package linux

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/namespace"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/overlay"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux/stage"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// overlayCaches has the overlays of the policy's caches made. If the machine
// cannot have overlays, the caches stay shared, except those that must not, and
// the report says so. If it can, a cache without one is not granted for
// writing: the reason may be one of the moment, which a session could bring
// about. It returns the policy that holds, and the overlays for Setup; nil if
// there are none.
func (r *ruleset) overlayCaches(
	client *overlay.Client, n namespace.Available, p *policy.Policy,
) (*policy.Policy, *namespace.Overlays) {
	if len(p.Caches) == 0 {
		return p, nil
	}
	if !n.Mounts {
		r.CacheGap = n.Gap
		return r.lockAlways(p, n.Gap), nil
	}
	var caches []overlay.Cache
	for _, c := range p.Caches {
		caches = append(caches, overlay.Cache{Path: c.Path, Empty: c.Empty})
	}
	prepared, err := client.Prepare(caches, n.User)
	if err == nil && prepared.Impossible != "" {
		r.CacheGap = prepared.Impossible
		return r.lockAlways(p, prepared.Impossible), nil
	}
	overlays := &namespace.Overlays{Dir: prepared.Dir}
	for i, c := range p.Caches {
		why, failed := prepared.Failed[i]
		switch {
		case err != nil:
			r.LockedCaches = append(r.LockedCaches, platform.Missing{Path: c.Path, Reason: err.Error()})
		case failed:
			r.LockedCaches = append(r.LockedCaches, platform.Missing{Path: c.Path, Reason: why})
		default:
			overlays.Paths = append(overlays.Paths, c.Path)
		}
	}
	if len(overlays.Paths) == 0 {
		overlays = nil
	}
	return r.lockCaches(p), overlays
}

// lockAlways takes the right to write from the caches that must be private.
func (r *ruleset) lockAlways(p *policy.Policy, why string) *policy.Policy {
	for _, c := range p.Caches {
		if c.Always {
			r.LockedCaches = append(r.LockedCaches, platform.Missing{Path: c.Path, Reason: why})
		}
	}
	return r.lockCaches(p)
}

// lockCaches takes the right to write from the LockedCaches.
func (r *ruleset) lockCaches(p *policy.Policy) *policy.Policy {
	locked := func(path string) bool {
		return slices.ContainsFunc(r.LockedCaches, func(c platform.Missing) bool {
			return policy.Contains(c.Path, path)
		})
	}
	effective := *p
	effective.Rules = slices.Clone(p.Rules)
	for i, rule := range effective.Rules {
		if locked(rule.Path) {
			effective.Rules[i].Access &^= policy.Write
		}
	}
	for i, rule := range r.Rules {
		if locked(string(rule.Path)) {
			r.Rules[i].Access &^= stage.FSWrite
		}
	}
	return &effective
}
