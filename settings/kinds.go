package settings

import (
	"reflect"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// byKind reports whether the settings distinguish the kinds of session.
func (s *Snapshot) byKind() bool {
	for _, state := range s.user {
		if state.Good.ByKind() || state.Bound.ByKind() {
			return true
		}
	}
	for _, entry := range s.granted {
		if kind, _ := document.SplitKey(entry.Key); kind != "" {
			return true
		}
	}
	return s.project != nil && s.project.Good.ByKind()
}

// evaluations are those of both kinds: one if the settings do not distinguish
// them.
func (s *Snapshot) evaluations() []*evaluation {
	list := []*evaluation{s.evaluation(document.KindTool)}
	if s.byKind() {
		list = append(list, s.evaluation(document.KindTerminal))
	}
	return list
}

// allAsks are the asks for both kinds, each once.
func (s *Snapshot) allAsks() []Ask {
	var list []Ask
	for _, e := range s.evaluations() {
		for _, a := range e.asks {
			if !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	return list
}

// kinds are the kinds that the evaluation is for.
func (e *evaluation) kinds() []document.Kind {
	if e.others != nil {
		return []document.Kind{e.kind}
	}
	return []document.Kind{document.KindTerminal, document.KindTool}
}

// exposure is why no project can be trusted; "" if one can.
func (s *Snapshot) exposure() string { return s.evaluation(document.KindTool).exposure }

// KeyFor is a key as it has to be written to count for a kind of session: with
// the block for the kind, if that decides about it.
func (s *Snapshot) KeyFor(kind document.Kind, key string) string {
	return s.evaluation(kind).writtenKey(key)
}

// writtenKey is KeyFor.
func (e *evaluation) writtenKey(key string) string { return inBlock(e.user.from[key], key) }

// inBlock is a key with the block for a kind, if it was set there.
func inBlock(from origin, key string) string {
	kind, _ := document.SplitKey(from.Written)
	if document.OfAgent(from.Span) {
		kind = document.KindTool
	}
	if kind != "" {
		return document.KeyOf(kind, key)
	}
	return key
}

// kindOf is a kind of session that a key decides for, and its name in a block.
// A key of the whole block decides for the kind that has no value of its own.
func (s *Snapshot) kindOf(key string) (document.Kind, string) {
	kind, name := document.SplitKey(key)
	if kind != "" {
		return kind, name
	}
	if s.KeyFor(document.KindTool, name) != name {
		return document.KindTerminal, name
	}
	return document.KindTool, name
}

// mergedByKind is the block that holds. The blocks for the kinds have the keys
// that are different for them, and those that stand in such blocks.
func (s *Snapshot) mergedByKind() document.Sandbox {
	tool, terminal := s.evaluation(document.KindTool), s.evaluation(document.KindTerminal)
	merged := s.wholeBlock()
	for _, l := range document.Keys() {
		if document.OnlyWhole(l.Name) {
			continue
		}
		a, ok := l.Get(&tool.merged)
		b, too := l.Get(&terminal.merged)
		equal := ok == too && (!ok || reflect.DeepEqual(a.Interface(), b.Interface()))
		if equal && ok {
			l.Set(&merged, a)
		}
		for _, e := range []*evaluation{tool, terminal} {
			if v, set := l.Get(&e.merged); set && (!equal || e.writtenKey(l.Name) != l.Name) {
				l.Of(e.kind).Set(&merged, v)
			}
		}
	}
	for _, e := range []*evaluation{tool, terminal} {
		restricted := e.restricted.Has(e.kind)
		if document.RestrictedKinds(*merged.Enabled, *merged.ApplyTo).Has(e.kind) != restricted {
			document.KeyNamed("enabled").Of(e.kind).Set(&merged, reflect.ValueOf(&restricted))
		}
	}
	return merged.Clone()
}

// wholeBlock are the user's settings without the blocks for the kinds.
func (s *Snapshot) wholeBlock() document.Sandbox {
	states := s.user
	if s.evaluation(document.KindTool).trusted {
		states = s.states()
	}
	merged := mergeStates(states, "")
	return merged.withDefaults()
}
