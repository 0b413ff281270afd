package source

import (
	"cmp"
	"errors"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// Managed returns the states of the organisation's files, lowest first, of those
// that exist.
func (s *Store) Managed() []State {
	if !s.options.Managed {
		return nil
	}
	paths, err := managed.Files()
	s.mu.Lock()
	gone := slices.DeleteFunc(slices.Clone(s.managed), func(path string) bool { return slices.Contains(paths, path) })
	s.mu.Unlock()
	var list []State
	var kept []string
	// A file that was there is asked once more: it may only be being saved.
	for _, path := range slices.Concat(paths, gone) {
		if state := s.State(path); state.Exists || state.Problem != nil {
			list = append(list, state)
			kept = append(kept, path)
		}
	}
	slices.SortStableFunc(list, func(a, b State) int {
		switch {
		case a.File == managed.File:
			return -1
		case b.File == managed.File:
			return 1
		}
		return cmp.Compare(a.File, b.File)
	})
	if err != nil {
		list = append(list, State{
			File: managed.DropIns, Exists: true, Managed: true,
			Problem: fileError("cannot list: " + textfile.Cause(err)),
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range kept {
		if !slices.Contains(s.managed, path) && s.counted {
			s.changed[path] = true
			s.count++
		}
	}
	s.managed, s.counted = kept, true
	return list
}

// decodeManaged decodes the content of a file of the organisation's.
func (s *File) decodeManaged(data []byte, next State) State {
	next.Managed = true
	found, problem := document.DecodeManaged(data, s.platform)
	good, bound := s.lastManaged()
	if problem != nil {
		next.Good, next.Bound, next.Problem = good, bound, problem
		return next
	}
	if bound != nil && found.Required.FirstError != nil {
		found.Required.Inherit(bound)
	}
	if good != nil && found.Defaults.FirstError != nil {
		found.Defaults.Inherit(good)
	}
	next.Good, next.Bound = found.Defaults, found.Required
	return next
}

// lastManaged is the last good content of a file of the organisation's, if it
// set anything.
func (s *File) lastManaged() (good, bound *document.Block) {
	if s.state.Good.HasSettings() || s.state.Bound.HasSettings() {
		return s.state.Good, s.state.Bound
	}
	return nil, nil
}

// unchecked is the state if the administrator may not have written the file. It
// does not count, unless that cannot be told.
func (s *File) unchecked(err error) (State, bool) {
	if !errors.Is(err, managed.ErrOthers) {
		return s.unusable(err)
	}
	next := State{
		File: s.path, Exists: true, Managed: true,
		Ignored: fileError("is ignored: " + display.Line(err.Error()) + "; give it to root alone"),
	}
	changed := s.state.Ignored == nil || *s.state.Ignored != *next.Ignored
	return next, changed
}

func fileError(message string) *document.Diagnostic {
	return &document.Diagnostic{Line: 1, Column: 1, Severity: document.SeverityError, Message: message}
}
