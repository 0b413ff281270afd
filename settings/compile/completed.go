package compile

import (
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What a session has for itself is added to the finished policy. An organisation
// bounds that, too.

// Add completes the policy by what the session has for itself, as far as the
// organisation allows that. Notes tells what it does not allow, except of the
// sidecar's program: few sessions execute it, and shared sandboxes may in any case.
// complete must leave its argument as it is.
func (c *Result) Add(complete func(policy.Policy) policy.Policy) {
	completed := complete(c.Policy)
	c.Policy = c.bounds.within(c.Policy, completed)
	for _, rule := range completed.Rules {
		name := "not-allowed-" + rule.Origin.Key
		known := func(n Note) bool { return n.Name == name }
		if rule.Origin.File != policy.OriginSession || slices.Contains(c.Policy.Rules, rule) ||
			slices.ContainsFunc(c.cut, known) {
			continue
		}
		c.cut = append(c.cut, Note{Name: name, Text: fmt.Sprintf(
			"sandboxed sessions lack the project's %s: the organisation's settings do not allow %s",
			rule.Origin.Key, display.Quote(rule.Path), // the history of shells
		)})
	}
}

// within is a completed policy without what the organisation does not allow of
// what was added. Rules of one origin are of use only together, and go together.
func (b *bounds) within(before, completed policy.Policy) policy.Policy {
	cut := map[policy.Origin]bool{}
	for _, rule := range completed.Rules {
		if !slices.Contains(before.Rules, rule) && !b.allow(rule) {
			cut[rule.Origin] = true
		}
	}
	if len(cut) > 0 {
		var gone []string
		completed.Rules = slices.DeleteFunc(slices.Clone(completed.Rules), func(rule policy.Rule) bool {
			is := cut[rule.Origin] && !slices.Contains(before.Rules, rule)
			if is {
				gone = append(gone, rule.Path)
			}
			return is
		})
		completed.Replaced = slices.DeleteFunc(slices.Clone(completed.Replaced), func(r policy.Replaced) bool {
			within := func(path string) bool { return policy.Contains(path, r.Source) }
			return slices.ContainsFunc(gone, within) && !slices.Contains(before.Replaced, r)
		})
	}
	hides := func(r policy.Replaced) bool {
		return !slices.Contains(before.Replaced, r) && slices.ContainsFunc(b.hidden, func(h policy.Hidden) bool {
			return policy.Contains(h.Path, r.Path) || policy.Contains(r.Path, h.Path)
		})
	}
	completed.Replaced = slices.DeleteFunc(slices.Clone(completed.Replaced), hides)
	names := slices.Clone(completed.Environment.Allowed)
	completed.Environment.Allowed = slices.DeleteFunc(names, func(name string) bool {
		refuses := func(e policy.Environment) bool { return !e.Allows(name) }
		return !slices.Contains(before.Environment.Allowed, name) && slices.ContainsFunc(b.variables, refuses)
	})
	return completed
}

// allow reports whether every file allows a rule. What it hides, no rule shows
// again, and no rule is for what holds it.
func (b *bounds) allow(rule policy.Rule) bool {
	for _, bound := range b.paths {
		if !bound.allows(rule.Path, true).Has(rule.Access) {
			return false
		}
	}
	return !slices.ContainsFunc(b.hidden, func(h policy.Hidden) bool {
		return policy.Contains(h.Path, rule.Path) || policy.Contains(rule.Path, h.Path)
	})
}
