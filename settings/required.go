package settings

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/hosts"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// What an organisation requires bounds the finished policy, whoever has opened
// what it takes away. docs/design/managed-settings.md says how.

// boundsOf are the organisation's requirements for a kind, one of each file.
func boundsOf(states []source.State, kind document.Kind) []settings {
	var list []settings
	for _, state := range states {
		if !state.Bound.HasSettings() {
			continue
		}
		required := requirementsOf(state)
		bound := mergeStates([]source.State{{File: state.File, Good: required}}, kind)
		bound.limit(required, kind)
		list = append(list, bound)
	}
	return list
}

// sets reports whether one of the keys is set.
func (s *settings) sets(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, set := s.from[key]; return set })
}

// boundPaths is what one file lets sessions do with paths.
type boundPaths struct {
	kinds  policy.Access // that it bounds
	cover  cover
	seen   *policy.Policy // has the rules and the directories of temporary files
	origin policy.Origin
}

// bounds keeps what Explain needs to know of the requirements.
type bounds struct {
	from    map[string]origin // of the keys that the organisation decides
	paths   []boundPaths
	hidden  []policy.Hidden
	network *policy.Origin // closes the network
	sockets *policy.Origin
	keys    *policy.Origin
	// variables are what each file lets sessions get, of those that list some.
	variables []policy.Environment
	// unclear is a requirement that could not be understood; nil if there is
	// none. Nothing starts then.
	unclear *document.FileDiagnostic
	// protects says that a machine has to be able to protect and to hide paths.
	protects bool
}

// bounding applies the requirements to an evaluation.
type bounding struct {
	*evaluation
	view    fsView // its host has nothing that the user can set
	project project
	// movable is what sessions may write, under these settings of the user or
	// under others that the file allows. They could have moved a link there.
	movable cover
	*reporter
}

// require narrows the policy to what the organisation's files allow.
func (e *evaluation) require(project project, r *reporter) {
	e.bounds.from = map[string]origin{}
	for i := range e.layers.bounds {
		bound := &e.layers.bounds[i]
		b := bounding{e, e.fsView, project, maps.Clone(e.writable), r}
		b.view.host.Home, b.view.host.Env = e.fsView.host.Account, nil
		b.movable.addWriters(grantsOf(b.view, bound, project))
		b.movable.addWriters(grantsOf(b.view, &e.layers.otherBounds[i], project))
		b.restrict(bound)
		b.scalars(bound)
		b.shell(bound)
		b.toolchains(bound)
		b.variables(bound)
		b.sockets(bound)
		b.signingKeys(bound)
		b.paths(bound)
		b.hide(bound)
		b.protect(bound)
	}
}

// decides records that a file decides about a key, and the value that counts.
func (b bounding) decides(s *settings, key string, value any) {
	b.bounds.from[key] = s.from[key]
	b.origins[key] = s.from[key].file
	if value != nil {
		document.KeyNamed(key).Set(&b.merged, reflect.ValueOf(value))
	}
}

func (b bounding) shell(s *settings) {
	if from, set := s.from[shellKey]; set {
		b.reporter.add(from.file, from.At, document.SeverityWarning, shellKey,
			`has no effect in "required"; write it into "defaults"`)
	}
}

func (b bounding) toolchains(s *settings) {
	if s.sets(toolchainsKey) { // chooseToolchains has dropped the others
		names := []string{}
		for _, c := range b.evaluation.toolchains {
			names = append(names, c.Name)
		}
		b.decides(s, toolchainsKey, names)
	}
}

// fileOf is the file of a requirement.
func (b bounding) fileOf(s *settings) string {
	for _, from := range s.from {
		return from.file
	}
	return managed.File
}

// refuse records a requirement that nobody can satisfy or understand.
func (b bounding) refuse(d *document.FileDiagnostic) {
	if d != nil && b.bounds.unclear == nil {
		b.bounds.unclear = d
	}
}

// network closes the network if the file says so, or if it lists hosts, which
// have an effect only then.
func (b bounding) network(s *settings) {
	closed := s.values.AllowNetwork != nil && !*s.values.AllowNetwork
	if !closed && !s.sets(allowedHostsKey, deniedHostsKey) {
		return
	}
	deciding := networkKey
	for _, other := range []string{allowedHostsKey, deniedHostsKey} {
		if !closed && s.sets(other) {
			deciding, closed = other, false
			break
		}
	}
	from := s.originOf(deciding)
	b.bounds.network = &from
	wasOpen := b.policy.Network.Allowed
	if wasOpen {
		b.policy.Network = policy.Network{Origin: from}
		b.bounds.from[networkKey], b.origins[networkKey] = s.from[deciding], s.from[deciding].file
		b.merged.AllowNetwork = new(false)
	}
	switch {
	case s.sets(allowedHostsKey):
		list, _ := hostsOf(s, allowedHostsKey, hosts.ParseAllowed, b.reporter)
		if !wasOpen {
			list = meetHosts(b.hosts.allowed, list, s.originOf(allowedHostsKey))
		}
		b.hosts.allowed = list
		b.decides(s, allowedHostsKey, hostTexts(list))
	case closed: // the whole network is meant
		b.hosts.allowed = nil
		b.bounds.from[allowedHostsKey], b.origins[allowedHostsKey] = s.from[networkKey], s.from[networkKey].file
		b.merged.AllowedHosts = []string{}
	}
	if s.sets(deniedHostsKey) {
		more, unclear := hostsOf(s, deniedHostsKey, hosts.ParseDenied, b.reporter)
		b.refuse(unclear)
		b.hosts.denied = append(slices.Clone(b.hosts.denied), more...)
		b.decides(s, deniedHostsKey, hostTexts(b.hosts.denied))
	}
	if b.hosts.unclear != nil {
		b.hosts.allowed = nil
	}
	b.policy.Network.AllowedHosts, b.policy.Network.DeniedHosts = nil, nil
	b.policy.Network = b.hosts.addTo(b.policy.Network)
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
	for _, pattern := range allowed {
		found := Variable{Pattern: pattern, Origin: s.originOf(key)}
		named := func(v Variable) bool { return v.Pattern == pattern }
		if i := slices.IndexFunc(b.evaluation.variables, named); i >= 0 {
			found = b.evaluation.variables[i]
		}
		list = append(list, found)
	}
	b.evaluation.variables = list
	b.policy.Environment = policy.Environment{Allowed: append([]string{}, allowed...), Origin: s.originOf(key)}
	b.decides(s, key, b.policy.Environment.Allowed)
}

func (b bounding) sockets(s *settings) {
	if !s.sets(socketsKey) {
		return
	}
	from := s.originOf(socketsKey)
	b.bounds.sockets = &from
	b.setSockets(meetSockets(b.evaluation.sockets, socketsOf(b.view, b.project, s, b.movable, b.reporter)))
	names := []string{}
	for _, socket := range b.evaluation.sockets {
		names = append(names, socket.text)
	}
	b.decides(s, socketsKey, names)
}

func (b bounding) setSockets(list []socket) {
	b.evaluation.sockets, b.policy.UnixSockets = list, socketRules(list)
}

// paths takes away what the lists of paths do not give. A file that sets a list
// for an access bounds that access; toolchains that it names and the platform's
// baseline in categories that it leaves out belong to its lists.
func (b bounding) paths(s *settings) {
	bound := boundPaths{cover: cover{}, origin: policy.Origin{File: b.fileOf(s), Key: "required"}}
	for _, c := range categories {
		if !s.sets(c.key) {
			continue
		}
		bound.origin = s.originOf(c.key)
		switch c.access {
		case readExecute:
			bound.kinds |= policy.Execute
		case policy.Read:
			bound.kinds |= policy.Read
		default:
			bound.kinds |= policy.Write | policy.Device
		}
	}
	private := s.values.TemporaryFiles != nil && *s.values.TemporaryFiles == document.TemporaryFilesPrivate
	if bound.kinds == 0 && !private {
		return
	}
	var grants []grant
	for _, c := range categories {
		list, _ := resolveRequests(b.view, b.project, requestsOf(s, c, b.view.host.Platform), b.reporter)
		grants = append(grants, list...)
	}
	home, _ := resolveRequests(b.view, b.project, dotfiles(b.view.host.Home), b.reporter)
	tools, _ := toolchainGrants(b.view, toolchainsOf(s, b.reporter), b.reporter)
	grants, _ = dropMovable(slices.Concat(grants, home, tools), b.movable, b.reporter)
	bound.cover = coverOf(grants)
	bound.seen = &policy.Policy{Rules: mergeRules(grants)}
	if private {
		bound.seen.Temporary = temporaryOf(b.view, grants, true)
	}
	b.bounds.protects = b.bounds.protects || private
	b.bounds.paths = append(b.bounds.paths, bound)
	b.narrow(bound)
	if private {
		b.keepTemporary()
	}
	for _, c := range categories {
		if s.sets(c.key) {
			b.decides(s, c.key, nil)
		}
	}
}

// allows is what the file lets sessions do with what is at a path outside or,
// if they see something else there, at that.
func (bound boundPaths) allows(path string, outside bool) policy.Access {
	given := bound.cover.at(path)
	if outside {
		if given = bound.seen.Outside(path); bound.temporary(path) {
			return given // whatever it does not bound elsewhere
		}
	}
	return given | ^bound.kinds
}

// temporary reports whether a path is in a directory of temporary files that
// has to be the project's own.
func (bound boundPaths) temporary(path string) bool {
	return slices.ContainsFunc(bound.seen.Temporary, func(t policy.Temporary) bool {
		return policy.Contains(t.Path, path)
	})
}

// narrow applies one file's lists to the rules.
func (b bounding) narrow(bound boundPaths) {
	before := b.policy
	var rules []policy.Rule
	for _, rule := range before.Rules {
		if !b.sessionsOwn(rule.Path) {
			rule.Access &= bound.allows(rule.Path, before.Outside(rule.Path) != 0)
			rule.Guarded &= rule.Access
		}
		if rule.Access != 0 {
			rules = append(rules, rule)
		}
	}
	b.policy.Rules = rules
	// What the file allows within a wider grant of the user's stays.
	for _, rule := range bound.seen.Rules {
		_, hidden := before.HiddenAt(rule.Path)
		access := rule.Access & bound.kinds & before.Outside(rule.Path) & bound.allows(rule.Path, true)
		if !hidden && access&^b.policy.At(rule.Path) != 0 {
			rule.Access = access | b.policy.At(rule.Path)
			rules = append(rules, rule)
		}
	}
	b.setRules(mergedRules(rules))
}

// keepTemporary gives the project a directory of temporary files of its own
// wherever a rule for a directory above would show that of other programs.
func (b bounding) keepTemporary() {
	for _, path := range temporaryPaths[b.fsView.host.Platform] {
		target := b.view.Resolve(path)
		own := policy.Contains(b.project.path, target.Path) && b.project.path != ""
		known := slices.ContainsFunc(b.policy.Temporary, func(t policy.Temporary) bool { return t.Path == target.Path })
		isDir := target.Err == nil && target.Exists && target.Mode.IsDir()
		if isDir && !own && !known && b.policy.At(target.Path) != 0 {
			from := b.bounds.from[temporaryKey]
			added := policy.Temporary{Path: target.Path, Origin: from.policy(temporaryKey, from.At)}
			b.policy.Temporary = append(b.policy.Temporary, added)
		}
	}
	slices.SortFunc(b.policy.Temporary, func(x, y policy.Temporary) int { return cmp.Compare(x.Path, y.Path) })
}

// sessionsOwn reports whether a path is the project, or its repository.
func (b bounding) sessionsOwn(path string) bool {
	return path == b.project.path && path != "" || slices.Contains(b.project.git.Outside, path)
}

// mergedRules sorts rules and makes one of those for the same path.
func mergedRules(rules []policy.Rule) []policy.Rule {
	byPath := map[string]policy.Rule{}
	for _, rule := range rules {
		if known, is := byPath[rule.Path]; is {
			known.Access |= rule.Access
			rule = known
		}
		byPath[rule.Path] = rule
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b policy.Rule) int { return cmp.Compare(a.Path, b.Path) })
}

// setRules replaces the rules, and drops what depends on rules that are gone.
func (b bounding) setRules(rules []policy.Rule) {
	p := &b.policy
	p.Rules = append([]policy.Rule{}, rules...)
	granted := cover{}
	for _, rule := range rules {
		granted.add(rule.Path, rule.Access)
	}
	p.Temporary = slices.DeleteFunc(slices.Clone(p.Temporary), func(t policy.Temporary) bool {
		return granted.at(t.Path) == 0
	})
	p.Caches = slices.DeleteFunc(slices.Clone(p.Caches), func(c policy.Cache) bool {
		return !granted.at(c.Path).Has(policy.Write)
	})
	b.create = slices.DeleteFunc(slices.Clone(b.create), func(dir string) bool {
		return !granted.at(dir).Has(policy.Write)
	})
	p.PrivateTerminals = privateTerminals(b.fsView, granted)
}

// hide hides the file's paths, whatever is granted there. A project cannot lie
// in one.
func (b bounding) hide(s *settings) {
	if !s.sets(hiddenKey) {
		return
	}
	h := hider{
		view: b.view, project: b.project, cover: cover{}, reporter: b.reporter, found: map[string]policy.Origin{},
	}
	h.layer(s)
	b.refuse(h.unclear)
	for _, path := range slices.Sorted(maps.Keys(h.found)) {
		from := h.found[path]
		diagnose := func(format string, args ...any) {
			b.refuse(&document.FileDiagnostic{File: from.File, Diagnostic: document.Diagnostic{
				Line: max(1, from.Line), Column: 1, Severity: document.SeverityError, Key: hiddenKey,
				Message: fmt.Sprintf(format, args...),
			}})
		}
		b.bounds.hidden = append(b.bounds.hidden, policy.Hidden{Path: path, Origin: from})
		within := func(granted string) bool { return granted != "" && policy.Contains(path, granted) }
		if within(b.project.path) {
			diagnose("the project %s lies in a path that your organisation hides", display.Quote(b.project.path))
			continue
		}
		b.setRules(slices.DeleteFunc(slices.Clone(b.policy.Rules), func(r policy.Rule) bool { return within(r.Path) }))
		hidden := func(s socket) bool { return within(s.path) }
		b.setSockets(slices.DeleteFunc(slices.Clone(b.evaluation.sockets), hidden))
		if b.policy.At(path) == 0 {
			continue
		}
		if b.fsView.host.Platform != "linux" {
			diagnose("macOS cannot hide %s, which %s holds", display.Quote(path), "a granted directory")
			continue
		}
		same := func(h policy.Hidden) bool { return h.Path == path }
		others := slices.DeleteFunc(slices.Clone(b.policy.Hidden), same)
		b.policy.Hidden = append(others, policy.Hidden{Path: path, Origin: from})
		b.bounds.protects = true
	}
	slices.SortFunc(b.policy.Hidden, func(x, y policy.Hidden) int { return cmp.Compare(x.Path, y.Path) })
	b.decides(s, hiddenKey, slices.Concat(b.merged.HiddenPaths, s.values.HiddenPaths))
}

// protect adds the file's protected paths.
func (b bounding) protect(s *settings) {
	if !s.sets(protectedKey) {
		return
	}
	list, without, unclear := protectedOf(b.view, b.project, s, b.reporter)
	b.refuse(unclear)
	for _, e := range without {
		b.reporter.add(s.from[protectedKey].file, e.at, document.SeverityWarning, protectedKey,
			`%s has no effect in "required", which only adds protected paths`, display.Quote(e.text))
	}
	adds := slices.DeleteFunc(slices.Clone(s.values.ProtectedPaths), func(entry string) bool {
		return strings.HasPrefix(entry, "!")
	})
	b.policy.Protected = sortProtected(slices.Concat(list, b.policy.Protected))
	b.bounds.protects = b.bounds.protects || len(list) > 0
	b.decides(s, protectedKey, slices.Concat(b.merged.ProtectedPaths, adds))
}
