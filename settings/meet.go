package settings

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// meetGrants returns what both lists grant. It compares resolved paths only:
// the text of a path below a granted directory does not say where a symlink in
// it leads.
// A project's entry never opens what sessions do not see without it.
func meetGrants(user, project []grant, seen outside) []grant {
	byUser, byProject := cover{}, cover{}
	for _, g := range user {
		// A private runtime directory is not a grant of the shared one.
		if !g.private {
			byUser.add(g.path, g.access)
		}
	}
	for _, g := range project {
		byProject.add(g.path, g.access)
	}
	var kept []grant
	for _, g := range user {
		common := byProject.at(g.path)
		if g.private {
			if common != 0 {
				kept = append(kept, g)
			}
			continue
		}
		if g.access &= common; g.access != 0 {
			kept = append(kept, g)
		}
	}
	for _, g := range project {
		// Equal paths are the user's and already in the list.
		if _, equal := byUser[g.path]; equal {
			continue
		}
		if g.access &= byUser.at(g.path) & seen.at(g.path); g.access != 0 {
			kept = append(kept, g)
		}
	}
	return kept
}

// meetPatterns returns patterns that match exactly the variables that both
// lists match, hooks included. A prefix on one side never matches a hook, even
// if the other side names it.
func meetPatterns(a, b []string) []string {
	var kept []string
	both := [2]policy.Environment{{Allowed: a}, {Allowed: b}}
	for _, pattern := range slices.Concat(a, b) {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if isPrefix && (!hasPrefixPattern(a, prefix) || !hasPrefixPattern(b, prefix)) {
			continue
		}
		// For a prefix this asks about a variable of that very name, asterisk
		// included: it would match as an exact name.
		if both[0].Allows(pattern) && both[1].Allows(pattern) {
			kept = append(kept, pattern)
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// hasPrefixPattern reports whether the list matches every variable of that
// prefix, except hooks.
func hasPrefixPattern(list []string, prefix string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		p, ok := strings.CutSuffix(pattern, "*")
		return ok && strings.HasPrefix(prefix, p)
	})
}

// strictestKinds is what two layers restrict together. A project's layer
// inherits the key that it does not set.
func strictestKinds(user document.Sandbox, project *document.Sandbox) document.Kinds {
	restricted := document.RestrictedKinds(*user.Enabled, *user.ApplyTo)
	if project == nil || project.Enabled == nil && project.ApplyTo == nil {
		return restricted
	}
	enabled, applyTo := *user.Enabled, *user.ApplyTo
	if project.Enabled != nil {
		enabled = *project.Enabled
	}
	if project.ApplyTo != nil {
		applyTo = *project.ApplyTo
	}
	return restricted.Union(document.RestrictedKinds(enabled, applyTo))
}
