package settings

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// origin says where the value of a key stands.
type origin struct {
	file string
	document.Span
}

// settings is a Sandbox with the origin of each key that is set. A key without
// an origin is a default.
type settings struct {
	values document.Sandbox
	from   map[string]origin
}

// mergeUser lays the trusted layers over each other, lowest first, without the
// defaults. Objects merge key by key, arrays replace.
func mergeUser(states []source.State) settings {
	merged := settings{from: map[string]origin{}}
	for _, state := range states {
		merged.overlay(state)
	}
	return merged
}

func (s *settings) overlay(state source.State) {
	if state.Good == nil {
		return
	}
	for _, l := range document.Keys {
		if v, ok := l.Get(&state.Good.Values); ok {
			l.Set(&s.values, v)
			s.from[l.Name] = origin{file: state.File, Span: state.Good.Spans[l.Name]}
		}
	}
}

// withDefaults returns a copy in which no key is nil that has a default of its
// own.
func (s *settings) withDefaults() document.Sandbox {
	values := document.Defaults()
	for _, l := range document.Keys {
		if v, ok := l.Get(&s.values); ok {
			l.Set(&values, v)
		}
	}
	return values
}

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
	result := policy.Origin{File: o.file, Key: key, Line: at.Line}
	if o.file == policy.OriginEditor {
		result.Line = 0
	}
	return result
}

// element is where the i-th entry of the list stands.
func (o origin) element(i int) document.Position { return o.Elements[i] }
