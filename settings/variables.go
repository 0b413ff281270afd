package settings

import (
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const variablesKey = "allowed_env_vars"

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
	known := map[string]bool{}
	for _, name := range list {
		known[name] = true
	}
	for i, name := range document.Added(added) {
		if !known[name] {
			known[name] = true
			list, entries = append(list, name), append(entries, from.entry(i))
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
