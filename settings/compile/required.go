package compile

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
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
		if state.Limited != "" && !required.HasSettings() {
			continue
		}
		bound := mergeStates([]source.State{{File: state.File, Good: required}}, kind)
		bound.limit(required, kind)
		bound.file = state.File
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
	index  *policy.Index  // of seen
	origin policy.Origin
}

// bounds keeps what explanations need to know of the requirements.
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
	// protects says that a machine has to be able to protect and to hide
	// paths. A file of a credential asks for that, too.
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
		b.credentials(bound)
		b.paths(bound)
		b.hide(bound)
		b.protect(bound)
	}
	e.policy.Copies = slices.DeleteFunc(slices.Clone(e.policy.Copies), func(c policy.Copy) bool {
		return e.bounds.refuses(policy.Read, c.Path) != nil
	})
}

// decides records that a file decides about a key, and the value that counts.
func (b bounding) decides(s *settings, key string, value any) {
	b.bounds.from[key] = s.from[key]
	b.origins[key] = s.from[key].file
	if value != nil {
		document.KeyNamed(key).Set(&b.merged, reflect.ValueOf(value))
	}
}

// fileOf is the file of a requirement.
func (b bounding) fileOf(s *settings) string { return s.file }

// refuse records a requirement that nobody can satisfy or understand.
func (b bounding) refuse(d *document.FileDiagnostic) {
	if d != nil && b.bounds.unclear == nil {
		b.bounds.unclear = d
	}
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
	home, _ := resolveRequests(b.view, b.project, b.view.dotfiles(), b.reporter)
	plain, _ := b.view.settingsOfOthers(b.movable)
	home = append(home, plain...)
	tools, _ := toolchainGrants(b.view, toolchainsOf(s, b.reporter), b.reporter)
	grants, _ = dropMovable(slices.Concat(grants, home, tools), b.movable, b.reporter)
	bound.cover = coverOf(grants)
	bound.seen = &policy.Policy{Rules: mergeRules(grants)}
	if private {
		bound.seen.Temporary = temporaryOf(b.view, grants, true)
	}
	bound.index = policy.NewIndex(bound.seen)
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
		if given = bound.index.Outside(path); bound.temporary(path) {
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
	was := b.policy
	before := policy.NewIndex(&was)
	var rules []policy.Rule
	for _, rule := range was.Rules {
		if !b.sessionsOwn(rule.Path) {
			rule.Access &= bound.allows(rule.Path, before.Outside(rule.Path) != 0)
			rule.Guarded &= rule.Access
		}
		if rule.Access != 0 {
			rules = append(rules, rule)
		}
	}
	b.policy.Rules = rules
	narrowed := policy.NewIndex(&b.policy)
	// What the file allows within a wider grant of the user's stays.
	for _, rule := range bound.seen.Rules {
		_, hidden := before.HiddenAt(rule.Path)
		access := rule.Access & bound.kinds & before.Outside(rule.Path) & bound.allows(rule.Path, true)
		if now := narrowed.At(rule.Path); !hidden && access&^now != 0 {
			rule.Access = access | now
			rules = append(rules, rule)
		}
	}
	b.setRules(mergedRules(rules))
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

// refuses returns the origin of a requirement that forbids an access to a path;
// nil if none does.
func (b *bounds) refuses(access policy.Access, path string) *policy.Origin {
	for i := range b.paths {
		if !b.paths[i].allows(path, true).Has(access) {
			return &b.paths[i].origin
		}
	}
	for i := range b.hidden {
		if policy.Contains(b.hidden[i].Path, path) {
			return &b.hidden[i].Origin
		}
	}
	return nil
}

// requirementsOf is what a file requires. One of the user's that only tightens
// has no say in what a project's file has none in.
func requirementsOf(state source.State) *document.Block {
	if state.Limited == "" {
		return state.Bound
	}
	block := *state.Bound
	block.Agent, block.Spans = nil, maps.Clone(block.Spans) // Zed's permissions only grant
	for _, key := range append(keysOfUser(), shellKey) {
		for _, of := range []string{
			key, document.KeyOf(document.KindTool, key), document.KeyOf(document.KindTerminal, key),
		} {
			delete(block.Spans, of)
		}
	}
	return &block
}
