package settings

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Suggestion is what a user may do about something that a session was refused.
type Suggestion struct {
	// Key and Value are the setting that would allow it, and as little else as can be: an entry of the list Key, or the whole value of Key as
	// JSON. Both are empty where no setting would, or where it should not be had by one click.
	Key, Value string
	// Hint is a sentence for the user; "" where there is nothing to say.
	Hint string
}

// Suggest says what would allow a refused access, which is one of Attempts, or "create" or "remove" of a name, or "signal" of a process. The
// target is as a session names it, so that it holds for sessions that start now.
func (s *Snapshot) Suggest(kind Kind, access, target string) (Suggestion, error) {
	switch access {
	case "create", "remove":
		return s.suggestName(kind, target)
	case "signal":
		return Suggestion{Hint: "no setting lets a session signal processes outside of it"}, nil
	}
	attempt, err := ParseAttempt(access)
	if err != nil {
		return Suggestion{}, fmt.Errorf("suggest a setting: %w", err)
	}
	x, err := s.Explain(kind, attempt, target)
	if err != nil {
		return Suggestion{}, err
	}
	return x.suggestion(), nil
}

// suggestName is about a name, which belongs to its directory, unless it is protected itself.
func (s *Snapshot) suggestName(kind Kind, target string) (Suggestion, error) {
	dir, err := s.Explain(kind, AttemptWrite, filepath.Dir(target))
	if err != nil {
		return Suggestion{}, err
	}
	if !dir.Allowed {
		return dir.suggestion(), nil
	}
	name, err := s.Explain(kind, AttemptWrite, target)
	if err != nil {
		return Suggestion{}, err
	}
	return name.suggestion(), nil
}

func (x Explanation) suggestion() Suggestion {
	switch {
	case x.Allowed:
		return Suggestion{Hint: "the settings allow it by now, for sessions that start from now on"}
	case x.Holds != "":
		return Suggestion{Hint: x.Hint}
	case !utf8.ValidString(x.Value) || strings.Contains(x.Value, "$"):
		return Suggestion{Hint: "its name cannot be written in settings; grant a directory above it"}
	}
	return Suggestion{Key: x.Key, Value: x.Value, Hint: x.Hint}
}

// Entry reports whether the value is an entry to be added to a list; else it is the key's whole value.
func (s Suggestion) Entry() bool { return s.Key != "allow_network" && s.Key != protectedKey }

// JSON is the value as it stands in a settings file: an entry of a list, or the whole value of another key and of protected_paths, of which
// one has to go.
func (s Suggestion) JSON() json.RawMessage {
	if !s.Entry() {
		return json.RawMessage(s.Value)
	}
	text, err := json.Marshal(s.Value)
	if err != nil {
		panic(fmt.Sprintf("BUG(sandbox-sidecar): marshal %q: %v", s.Value, err))
	}
	return text
}

// toolchainOf names the toolchain that the target belongs to, and that would grant the access: its name says more than a path, and
// grants what else the tool will need. It is "" where there is none, or where the settings have it already.
func (x *explainer) toolchainOf(access policy.Access) string {
	found, longest := "", 0
	for _, t := range toolchains {
		if slices.ContainsFunc(x.toolchains, func(c chosen) bool { return c.name == t.name }) {
			continue
		}
		for _, p := range t.places {
			if p.on != "" && p.on != x.host.platform || !p.access.Has(access) {
				continue
			}
			for _, dir := range x.placeDirs(chosen{toolchain: t}, p) {
				place := x.resolver.resolve(filepath.Join(dir, p.below))
				if place.err == nil && (place.exists || p.create) && policy.Contains(place.path, x.end.path) && len(place.path) > longest {
					found, longest = t.name, len(place.path)
				}
			}
		}
	}
	return found
}
