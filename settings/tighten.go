package settings

import (
	"errors"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Each function here decides one part of a policy from the user's values, and
// from what an untrusted project's file tightens.

const (
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

// chooseVariables lists the variables that sessions get, those of the toolchains
// included.
func chooseVariables(l layers, toolchains []chosen, r *reporter) ([]Variable, policy.Environment) {
	const key = variablesKey
	allowed := patternsOf(&l.user, r)
	if allowed == nil {
		allowed = slices.Sorted(slices.Values(document.DefaultEnvVars))
	}
	from := l.user.originOf(key)
	if l.projectSets(key) {
		both := meetPatterns(allowed, patternsOf(l.project, r))
		if !slices.Equal(both, allowed) {
			from = l.project.originOf(key)
			l.decide(key)
			l.tightened.values.AllowedEnvVars = slices.Concat([]string{}, both)
		}
		allowed = both
	}
	var variables []Variable
	for _, pattern := range allowed {
		origin := from
		// The line of the entry itself, if the list is one file's.
		if source := l.user.from[key]; !l.projectSets(key) && source.file != "" {
			source = source.entry(slices.Index(l.user.values.AllowedEnvVars, pattern))
			if origin = source.policy(key, source.At); source.file == "" {
				origin = policy.Origin{File: policy.OriginBuiltIn, Key: key}
			}
		}
		variables = append(variables, Variable{Pattern: pattern, Origin: origin})
	}
	for _, v := range toolchainVariables(toolchains) {
		if !slices.ContainsFunc(variables, func(known Variable) bool { return known.Pattern == v.Pattern }) {
			variables = append(variables, v)
		}
	}
	slices.SortStableFunc(variables, func(a, b Variable) int { return strings.Compare(a.Pattern, b.Pattern) })
	environment := policy.Environment{Allowed: []string{}, Origin: from}
	for _, v := range variables {
		environment.Allowed = append(environment.Allowed, v.Pattern)
	}
	return variables, environment
}

func chooseSockets(
	view fsView, l layers, p project, toolchains []chosen, writable cover, r *reporter,
) []socket {
	list := socketsOf(view, p, &l.user, writable, r)
	for _, s := range toolchainSockets(view, toolchains) {
		if rest, _ := dropMovable([]grant{s.grant}, writable, r); len(rest) > 0 {
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

// choosePaths unites the built-in protected paths with those of the user and of
// the project. Only the user's entries take built-in ones away. unclear is the
// first entry that could not be understood.
func choosePaths(
	view fsView, l layers, p project, r *reporter,
) ([]policy.Protected, *document.FileDiagnostic) {
	list, without, unclear := protectedOf(view, p, &l.user, r)
	if from, set := l.user.from[protectedKey]; set && len(l.user.values.ProtectedPaths) == 0 {
		r.add(from.file, from.At, document.SeverityInfo, protectedKey,
			`[] has no effect: the built-in list stays; to protect nothing, write ["!*"]`)
	}
	list = append(list, builtInProtected(view, p, without)...)
	for _, e := range without {
		covers := func(p policy.Protected) bool {
			return p.Pattern && p.Origin.File == policy.OriginBuiltIn && p.Covers(e.path)
		}
		if i := slices.IndexFunc(list, covers); i >= 0 {
			whole := strings.TrimPrefix(list[i].Path, p.path+"/")
			r.add(l.user.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
				"%s has no effect, as the built-in %s covers it; take that away with %s, and list what must stay",
				display.Quote(e.text), display.Quote(whole), display.Quote("!"+whole))
		} else if !e.used {
			r.add(l.user.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
				"%s takes nothing away: the built-in list has no such path here", display.Quote(e.text))
		}
	}
	if l.projectSets(protectedKey) {
		more, ignored, alsoUnclear := protectedOf(view, p, l.project, r)
		for _, e := range ignored {
			r.add(l.projectFile, e.at, document.SeverityWarning, protectedKey,
				"%s has no effect unless you trust this project: its file can only add protected paths",
				display.Quote(e.text))
		}
		if len(more) > 0 {
			adds := slices.DeleteFunc(slices.Clone(l.project.values.ProtectedPaths), func(entry string) bool {
				return strings.HasPrefix(entry, "!")
			})
			l.tightened.values.ProtectedPaths = slices.Concat(l.user.values.ProtectedPaths, adds)
			l.decide(protectedKey)
		}
		list = append(list, more...)
		if unclear == nil {
			unclear = alsoUnclear
		}
	}
	for _, path := range p.git.OutsideProtected {
		one := builtIn(path)
		one.GitConfig = slices.Contains(p.git.Configs, path)
		list = append(list, one) // the grant of the repository depends on it, whatever the settings say
	}
	return append([]policy.Protected{}, list...), unclear
}

var (
	errBadPattern = errors.New("expected NAME or PREFIX_*, of letters, digits and _")
	errEverything = errors.New("would pass everything; name what a session needs")
)

// checkPattern validates an entry of allowed_env_vars.
func checkPattern(pattern string) error {
	if pattern == "*" {
		return errEverything
	}
	if !resolve.IsName(strings.TrimSuffix(pattern, "*")) {
		return errBadPattern
	}
	return nil
}

// patternsOf returns the valid entries of allowed_env_vars, sorted; nil if the
// layer does not set it.
func patternsOf(s *settings, r *reporter) []string {
	const key = variablesKey
	from, ok := s.from[key]
	if !ok {
		return nil
	}
	list := []string{}
	for i, pattern := range s.values.AllowedEnvVars {
		if err := checkPattern(pattern); err != nil {
			entry := from.entry(i)
			r.add(entry.file, entry.At, document.SeverityError, key,
				"%s: %v; the entry does not count", display.Quote(pattern), err)
			continue
		}
		list = append(list, pattern)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

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
