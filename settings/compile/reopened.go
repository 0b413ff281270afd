package compile

import (
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// reopen leaves to the rules what is meant to be written below protected paths.
// Below what is protected only because a grant holds it, that is what a narrower
// grant names; outside are such paths. In the sidecar's own places it is own, the
// user's other files there. A path is reopened only if each entry above it may be:
// no grant opens what the settings, the organisation or the project protect.
func (e *evaluation) reopen(own []string, outside map[string]bool) {
	entries := map[string]policy.Protected{}
	for _, one := range e.policy.Protected {
		if !one.Pattern && !one.Creatable {
			entries[one.Path] = one
		}
	}
	around := func(one policy.Protected) bool {
		return outside[one.Path] && one.Origin.File == policy.OriginBuiltIn && !one.Decides
	}
	place := func(one policy.Protected) bool {
		return around(one) || slices.ContainsFunc(e.own, func(p ownPlace) bool { return p.path == one.Path })
	}
	var list []string
	add := func(path string, may func(policy.Protected) bool) {
		if !e.Resolve(path).Exists && !slices.Contains(e.create, path) {
			return // nobody can make it in a protected directory
		}
		covered := false
		for dir := range upwards(filepath.Dir(path)) {
			if one, is := entries[dir]; is && !may(one) {
				return
			} else if is {
				covered = true
			}
		}
		if covered {
			list = append(list, path)
		}
	}
	for _, path := range own {
		add(path, place)
	}
	if e.host.Platform == "linux" {
		for _, path := range writable(e.lasting) {
			add(path, around)
		}
	}
	slices.Sort(list)
	e.policy.Reopened = slices.Compact(list)
}
