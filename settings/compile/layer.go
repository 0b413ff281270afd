package compile

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// layers are the settings of an evaluation, by how they count.
type layers struct {
	// user are the layers that count as they are written, a trusted project's
	// file included.
	user settings
	// project is an untrusted project's file, which may only tighten; nil if
	// there is none.
	project *settings
	// projectFile is the project's file if it is not ignored; else "".
	projectFile string
	states      []source.State
	stale       map[string]bool // see reporter
	kind        document.Kind   // of the sessions
	// others are the user's settings for the other kind; nil if they are the
	// same.
	others *settings
	// base are the user's values, completed by the defaults.
	base document.Sandbox
	// tightened are the values that an untrusted project's file decides. Each
	// step of an evaluation adds those of its keys.
	tightened *settings
	// bounds are what the organisation requires, one of each file.
	bounds []settings
	// otherBounds are those for the other kind.
	otherBounds []settings
	agent       *Agent // of the command line; nil if there is none
}

// layers sorts the files by how they count for a kind of session.
func (s *Input) layers(how treatment, kind document.Kind) layers {
	l := layers{
		states: s.UserStates, stale: map[string]bool{}, kind: kind, agent: s.Agent,
		bounds: boundsOf(s.UserStates, kind),
	}
	l.otherBounds = boundsOf(s.UserStates, kind.Other())
	if s.ProjectState != nil && how != asIgnored {
		l.projectFile, l.states = s.ProjectState.File, s.states()
	}
	counting := l.states
	if how == asTightening {
		tightening := mergeStates(l.states[len(s.UserStates):], kind)
		tightening.limit(s.ProjectState.Good, kind)
		tightening.dropAdding()
		l.project, counting = &tightening, s.UserStates
	}
	if s.Command != nil {
		counting = append(slices.Clone(counting), *s.Command)
	}
	l.user = mergeStates(counting, kind)
	l.user.grant(s.Granted, kind)
	l.base, l.tightened = l.user.withDefaults(), newSettings()
	if s.byKind() {
		others := mergeStates(counting, kind.Other())
		others.grant(s.Granted, kind.Other())
		l.others = &others
	}
	for _, state := range l.states {
		if state.Problem != nil {
			l.stale[state.File] = true
		}
	}
	return l
}

// projectSets reports whether an untrusted project's file sets a key.
func (l layers) projectSets(key string) bool {
	if l.project == nil {
		return false
	}
	_, ok := l.project.from[key]
	return ok
}

// othersRestricted reports whether the user's settings sandbox the other kind
// and distinguish it.
func (l layers) othersRestricted() bool {
	if l.others == nil {
		return false
	}
	values := l.others.withDefaults()
	return document.RestrictedKinds(*values.Enabled, *values.ApplyTo).Has(l.kind.Other())
}

// origin says where the value of a key stands.
type origin struct {
	file string
	document.Span
	// entries are where those of a list stand that several layers have made; nil
	// if one layer has.
	entries []origin
	// onDefaults says that such a list contains the built-in one.
	onDefaults bool
}

// settings is a Sandbox with the origin of each key that is set. A key without
// an origin is a default.
type settings struct {
	values document.Sandbox
	from   map[string]origin
	file   string // of a requirement
}

func newSettings() *settings { return &settings{from: map[string]origin{}} }

// mergeStates merges layers, lowest first, without the defaults, as they count
// for a kind of session; without a kind, the blocks for the kinds are left out.
// Objects merge key by key; arrays replace.
func mergeStates(states []source.State, kind document.Kind) settings {
	merged := newSettings()
	mode := modeOf(states, kind)
	for _, state := range states {
		merged.overlay(state, kind, mode)
	}
	return *merged
}

// inMemory is the position of an entry that no file holds; see Addition.
var inMemory = document.Position{Line: -1}

// grant adds what the user has allowed until the sidecar ends. The entries come
// on top of the lists that count, and keep their own origin.
func (s *settings) grant(entries []Addition, kind document.Kind) {
	for _, entry := range entries {
		of, name := document.SplitKey(entry.Key)
		from := s.from[name]
		if of == "" && inBlock(from, name) != name || of != "" && of != kind {
			continue // the key decides for the other kind
		}
		list := s.values.List(name)
		if slices.Contains(list, entry.Value) {
			continue
		}
		if from.file == "" {
			from.file = policy.OriginWindow
		}
		from.Elements = append(slices.Clone(from.Elements), inMemory)
		s.from[name] = from
		s.values.SetList(name, append(slices.Clone(list), entry.Value))
	}
}

// modeOf is where the mode that counts stands. A mode replaces those of the
// layers below, with all that they set.
func modeOf(states []source.State, kind document.Kind) place {
	at := place{}
	for _, state := range states {
		if state.Good == nil {
			continue
		}
		for _, key := range []string{modeKey, document.KeyOf(kind, modeKey)} {
			if span, ok := state.Good.Spans[key]; ok {
				at = place{state.File, span.At}
			}
		}
	}
	return at
}

func (s *settings) overlay(state source.State, kind document.Kind, mode place) {
	if state.Good == nil {
		return
	}
	if agent := state.Good.Agent; agent != nil && kind == document.KindTool {
		below := state
		below.Good = &document.Block{Values: agent.Values, Spans: agent.Spans}
		for _, l := range document.Keys() {
			s.set(l, l, below, mode)
		}
	}
	for _, l := range document.Keys() {
		s.set(l, l, state, mode)
		if kind != "" {
			s.set(l, l.Of(kind), state, mode) // it counts more
		}
	}
}

// set takes the value of a key over from another key of a file.
func (s *settings) set(to, from document.Key, state source.State, mode place) {
	span, ok := state.Good.Spans[from.Name]
	if !ok || span.Baseline || span.Mode != "" && mode != (place{state.File, span.At}) {
		return
	}
	if v, ok := from.Get(&state.Good.Values); ok {
		if document.OfVariables(to.Name) && document.Adds(v.Interface().([]string)) {
			s.addVariables(v.Interface().([]string), origin{file: state.File, Span: span})
			return
		}
		if to.Name == document.CredentialsKey {
			s.values.Credentials = document.MergeCredentials(s.values.Credentials,
				v.Interface().(map[string]*document.Credential), state.File)
		} else {
			to.Set(&s.values, v)
		}
	}
	s.from[to.Name] = origin{file: state.File, Span: span}
}

// limit takes over that a project's mode allows the platform's baseline at most.
func (s *settings) limit(project *document.Block, kind document.Kind) {
	if project == nil {
		return
	}
	for _, l := range document.Keys() {
		for _, from := range []document.Key{l, l.Of(kind)} {
			span := project.Spans[from.Name]
			if _, set := s.from[l.Name]; span.Baseline && !set {
				s.from[l.Name] = origin{file: s.from[modeKey].file, Span: span}
			}
		}
	}
}

// over returns a copy of other in which the keys that s sets have its values.
func (s *settings) over(other document.Sandbox) document.Sandbox {
	result := other.Clone()
	for _, l := range document.Keys() {
		if v, ok := l.Get(&s.values); ok {
			l.Set(&result, v)
		}
	}
	return result.Clone()
}

// withDefaults returns the values, completed by the defaults.
func (s *settings) withDefaults() document.Sandbox { return s.over(document.Defaults()) }

// decide records that the project's file decides about a key.
func (l layers) decide(key string) { l.tightened.from[key] = l.project.from[key] }

// take takes the value of a key over from the project's file, which is untrusted.
func (l layers) take(key string) {
	k := document.KeyNamed(key)
	if v, set := k.Get(&l.project.values); set {
		k.Set(&l.tightened.values, v)
	}
	l.decide(key)
}

// originOf is where the value of a key stands that both allow.
func (l layers) originOf(key string) policy.Origin {
	if _, tightens := l.tightened.from[key]; tightens {
		return l.project.originOf(key)
	}
	return l.user.originOf(key)
}

// values are those of both, as far as settings can express them.
func (l layers) values() document.Sandbox { return l.tightened.over(l.base) }

// originOf is where a key as a whole was set.
func (s *settings) originOf(key string) policy.Origin {
	from, ok := s.from[key]
	if !ok {
		return policy.Origin{File: policy.OriginBuiltIn, Key: key}
	}
	return from.policy(key, from.At)
}

// policy turns a position in the origin's file into the origin of a rule.
func (o origin) policy(key string, at document.Position) policy.Origin {
	result := policy.Origin{
		File: o.file, Key: key, Written: o.Written, Entry: string(o.Mode), Line: at.Line,
		Organisation: managed.Holds(o.file),
	}
	if o.file == policy.OriginEditor || o.file == policy.OriginCommand {
		result.Line = 0
	}
	if at == inMemory {
		return policy.Origin{File: policy.OriginWindow, Key: key}
	}
	return result
}

// element is where the i-th entry of the list stands.
func (o origin) element(i int) document.Position { return o.Elements[i] }

// entry is where the i-th entry of the list stands, if several layers may have
// made the list.
func (o origin) entry(i int) origin {
	if o.entries != nil {
		return o.entries[i]
	}
	o.At = o.Elements[i]
	return o
}
