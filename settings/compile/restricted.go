package compile

import (
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const (
	modeKey    = "mode"
	enabledKey = "enabled"
	applyToKey = "apply_to"
)

// restrict combines enabled and apply_to.
func restrict(l layers) document.Kinds {
	user := strictestKinds(l.base, nil)
	if l.project == nil {
		return user
	}
	both := strictestKinds(l.base, &l.project.values)
	if both == user {
		return user
	}
	l.tightened.values.Enabled, l.tightened.values.ApplyTo = new(true), new(both.ApplyTo())
	for _, key := range []string{enabledKey, applyToKey} {
		if l.projectSets(key) {
			l.decide(key)
		}
	}
	return both
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

// restrict takes over what the organisation restricts. "enabled" alone restricts
// both kinds, so it decides about apply_to, too.
func (b bounding) restrict(s *settings) {
	required := s.values
	if required.Enabled != nil && *required.Enabled && required.ApplyTo == nil {
		required.ApplyTo = new(document.ApplyToBoth) // whatever the user's is
	}
	both := b.restricted.Union(strictestKinds(b.merged, &required))
	if both == b.restricted {
		return
	}
	b.restricted = both
	applied := both.ApplyTo()
	if s.sets(enabledKey) && !s.sets(applyToKey) && applied != *b.merged.ApplyTo {
		b.bounds.from[applyToKey], b.origins[applyToKey] = s.from[enabledKey], s.from[enabledKey].file
	}
	b.merged.Enabled, b.merged.ApplyTo = new(true), new(applied)
	for _, key := range []string{enabledKey, applyToKey} {
		if s.sets(key) {
			b.decides(s, key, nil)
		}
	}
}

func (b *asker) kinds() {
	var free []string
	for _, kind := range b.e.kinds() {
		if b.alone.restricted.Has(kind) && !b.e.restricted.Has(kind) {
			free = append(free, string(kind)+"s")
		}
	}
	if len(free) == 0 {
		return
	}
	key := applyToKey
	if b.projects(enabledKey) && !*b.e.merged.Enabled {
		key = enabledKey
	}
	b.addKey(key, "%s run without any sandbox: they may do everything that you may", strings.Join(free, " and "))
}
