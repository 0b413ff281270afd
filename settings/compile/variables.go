package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

const variablesKey = "allowed_env_vars"

// Variable is an entry of the list of variables that sessions get, with its
// origin.
type Variable struct {
	Pattern string
	Origin  policy.Origin
}

// addVariables adds the entries of a layer to the list that counts below it. An
// entry that is there already keeps its place.
func (s *settings) addVariables(added []string, from origin) {
	below, set := s.from[variablesKey]
	list := slices.Clone(s.values.AllowedEnvVars)
	if !set {
		list, below = slices.Sorted(slices.Values(document.DefaultEnvVars)), origin{onDefaults: true}
	}
	entries := make([]origin, 0, len(list)+len(added))
	for i := range list {
		if !set {
			entries = append(entries, origin{})
			continue
		}
		entries = append(entries, below.entry(i))
	}
	known := map[string]int{}
	for i, name := range list {
		known[name] = i
	}
	for i, name := range document.Added(added) {
		at, is := known[name]
		switch {
		case !is:
			known[name] = len(list)
			list, entries = append(list, name), append(entries, from.entry(i))
		case entries[at].file == "": // a default, which somebody means now
			entries[at] = from.entry(i)
		}
	}
	from.entries, from.onDefaults = entries, below.onDefaults
	from.Elements = make([]document.Position, len(entries))
	for i, entry := range entries {
		from.Elements[i] = entry.At
	}
	s.values.AllowedEnvVars, s.from[variablesKey] = list, from
}

// dropAdding leaves out what an untrusted project's file adds: it can only take
// away.
func (s *settings) dropAdding() {
	if s.from[variablesKey].onDefaults {
		s.values.AllowedEnvVars = nil
		delete(s.from, variablesKey)
	}
}

// adding says where a variable can be added to those that sessions get.
type adding struct {
	key   string // of the list, in the block of the kind that decides
	mark  string // before its name
	file  string // if the user's own files do not decide
	taken string // the project's file, if it takes all others away
}

// addingVariables finds the list that decides. A list with "+" adds to it from any
// layer above, but not to one in the block for a kind.
func (e *evaluation) addingVariables() adding {
	from, set := e.user.from[variablesKey]
	a := adding{key: e.writtenKey(variablesKey), mark: document.AddingMark}
	own := set && !managed.Holds(from.file)
	if own && from.entries == nil {
		a.mark = ""
	}
	if !own {
		a.key = variablesKey
	}
	if own && (from.file == policy.OriginEditor || from.file == e.projectFile) {
		a.file = from.file
	}
	if e.projectSets(variablesKey) {
		a.taken = e.projectFile
	}
	return a
}

// PassVariable says on one line what lets later sessions get a variable, or why
// no setting of the user's does.
func (c *Result) PassVariable(name string) string { return c.adding.pass(name, c.bounds) }

// pass is PassVariable.
func (a adding) pass(name string, by bounds) string {
	for _, listed := range by.variables {
		if !listed.Allows(name) {
			return "your organisation's settings do not let sessions have it"
		}
	}
	if a.taken != "" {
		return fmt.Sprintf("the project's file %s does not list it", display.Quote(a.taken))
	}
	kind, key := document.SplitKey(a.key)
	step := fmt.Sprintf("add %s to %q", display.Quote(a.mark+name), key)
	if kind != "" {
		step += fmt.Sprintf(" of %q", kind)
	}
	if a.file != "" {
		step += " in " + display.Quote(a.file)
	}
	return step
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
	listed := map[string]int{}
	for i, pattern := range slices.Backward(l.user.values.AllowedEnvVars) {
		listed[pattern] = i
	}
	known := map[string]bool{}
	for _, pattern := range allowed {
		origin := from
		// The line of the entry itself, if the list is one file's.
		if source := l.user.from[key]; !l.projectSets(key) && source.file != "" {
			source = source.entry(placeIn(listed, pattern))
			if origin = source.policy(key, source.At); source.file == "" {
				origin = policy.Origin{File: policy.OriginBuiltIn, Key: key}
			}
		}
		known[pattern] = true
		variables = append(variables, Variable{Pattern: pattern, Origin: origin})
	}
	for _, v := range toolchainVariables(toolchains) {
		if !known[v.Pattern] {
			known[v.Pattern] = true
			variables = append(variables, v)
		}
	}
	slices.SortStableFunc(variables, func(a, b Variable) int { return strings.Compare(a.Pattern, b.Pattern) })
	environment := policy.Environment{Allowed: []string{}, Origin: from}
	listedByHand := policy.NamesOf(l.user.byHand(l.projectFile))
	for _, v := range variables {
		environment.Allowed = append(environment.Allowed, v.Pattern)
	}
	for _, name := range document.RegistryVariables {
		if environment.Allows(name) && !listedByHand.Allows(name) {
			environment.Bare = append(environment.Bare, name)
		}
	}
	slices.Sort(environment.Bare)
	return variables, environment
}

// byHand are the entries of the list that somebody has written, other than a
// project's: a trusted one is asked about what passes, and not how.
func (s *settings) byHand(projectFile string) (list []string) {
	from, set := s.from[variablesKey]
	if !set {
		return nil
	}
	for i, pattern := range s.values.AllowedEnvVars {
		if file := from.entry(i).file; file != "" && file != projectFile {
			list = append(list, pattern)
		}
	}
	return list
}

// placeIn is where a list has an entry; -1 if it has none.
func placeIn(list map[string]int, entry string) int {
	if i, is := list[entry]; is {
		return i
	}
	return -1
}

// toolchainVariables are the variables that sessions get because of the
// toolchains.
func toolchainVariables(toolchains []chosen) []Variable {
	var list []Variable
	for _, c := range toolchains {
		for _, v := range c.Variables {
			origin := c.origin
			origin.Reason = v.Why
			list = append(list, Variable{Pattern: v.Name, Origin: origin})
		}
	}
	return list
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

// meetPatterns returns patterns that match exactly the variables that both
// lists match, hooks included. A prefix on one side never matches a hook, even
// if the other side names it.
func meetPatterns(a, b []string) []string {
	var kept []string
	both := [2]policy.Names{policy.NamesOf(a), policy.NamesOf(b)}
	for _, pattern := range slices.Concat(a, b) {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		if isPrefix && (!both[0].HasPrefix(prefix) || !both[1].HasPrefix(prefix)) {
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

// variables takes the variables away that the file does not list, those of
// toolchains included.
func (b bounding) variables(s *settings) {
	const key = variablesKey
	if !s.sets(key) {
		return
	}
	listed := patternsOf(s, b.reporter)
	b.bounds.variables = append(b.bounds.variables, policy.Environment{Allowed: listed})
	allowed := meetPatterns(b.policy.Environment.Allowed, listed)
	var list []Variable
	known := map[string]Variable{}
	for _, v := range slices.Backward(b.evaluation.variables) {
		known[v.Pattern] = v
	}
	for _, pattern := range allowed {
		found, is := known[pattern]
		if !is {
			found = Variable{Pattern: pattern, Origin: s.originOf(key)}
		}
		list = append(list, found)
	}
	b.evaluation.variables = list
	b.policy.Environment = policy.Environment{
		Allowed: append([]string{}, allowed...), Origin: s.originOf(key), Bare: b.policy.Environment.Bare,
	}
	b.decides(s, key, b.policy.Environment.Allowed)
}

func (b *asker) variables() {
	const key = variablesKey
	if !b.projects(key) {
		return
	}
	alone, now := policy.NamesOf(b.alone.policy.Environment.Allowed), policy.NamesOf(b.e.policy.Environment.Allowed)
	for i, pattern := range b.e.user.values.AllowedEnvVars {
		prefix, isPrefix := strings.CutSuffix(pattern, "*")
		covered := alone.Allows(pattern) && (!isPrefix || alone.HasPrefix(prefix))
		if covered || !now.Has(pattern) {
			continue
		}
		at := b.e.user.from[key].element(i)
		switch {
		case isPrefix:
			b.add(key, pattern, at, "sessions get every variable of yours whose name begins with %s",
				display.Quote(prefix))
		case policy.IsHook(pattern):
			b.add(key, pattern, at, "sessions get your variable %s, which can make programs run code that it names",
				display.Quote(pattern))
		default:
			b.add(key, pattern, at, "sessions get your variable %s", display.Quote(pattern))
		}
	}
}
