package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
)

// Scope is whose settings are changed.
type Scope string

const (
	// ScopeProject is the project's file.
	ScopeProject Scope = "project"
	// ScopeUser is the user's own.
	ScopeUser Scope = "user"
	// ScopeWindow is no file: it lasts until the sidecar ends; see Store.Grant.
	ScopeWindow Scope = "window"
)

// maxGranted bounds what is granted for one project until the sidecar ends.
const maxGranted = 100

// ErrNotAllowable means that a setting cannot be written into the file that
// would have to hold it; the error says why.
var ErrNotAllowable = errors.New("allow by a setting")

// Allowable says why a suggestion cannot be written into the settings of a
// scope, as a snapshot knows them, or nil. Only entries of lists can be written.
// Anything else the user has to write.
func Allowable(s *compile.Snapshot, scope Scope, suggestion explain.Suggestion) error {
	key := suggestion.Setting()
	switch known := key == "toolchains" || key == "allowed_hosts" || strings.HasPrefix(key, "additional_"); {
	case !document.IsList(suggestion.Key):
		return fmt.Errorf("%w: %q is no list that can be added to", ErrNotAllowable, suggestion.Key)
	case !known:
		return fmt.Errorf("%w: %q is for you to write: this adds only paths, hosts and toolchains", ErrNotAllowable,
			suggestion.Key)
	}
	if scope == ScopeWindow {
		return nil
	}
	if scope == ScopeUser {
		// The entry would go into a file that does not count now, and make all
		// of it count.
		for _, state := range s.UserStates {
			d := state.Problem
			if d == nil {
				d = state.Doubt()
			}
			if d != nil {
				return fmt.Errorf("%w: %s is wrong: %s", ErrNotAllowable, state.File, d.Message)
			}
		}
		_, err := fileOfUser(s, suggestion.Key)
		return err
	}
	p := s.Project()
	switch {
	case s.ProjectState == nil:
		return fmt.Errorf("%w: there is no project with settings of its own", ErrNotAllowable)
	case p.Exists && p.Problem != "":
		return fmt.Errorf("%w: %s: %s", ErrNotAllowable, display.Quote(p.File), p.Problem)
	case s.Exposure() != "":
		return fmt.Errorf("%w: %s: %s", ErrNotAllowable, display.Quote(p.File), s.Exposure())
	case p.Exists && !p.Trusted && !s.ProjectState.Good.Empty:
		// What it asks for does not matter: under a command line or other settings
		// of the user it would be less than it is.
		return fmt.Errorf("%w: %s is not trusted, and writing it would trust it all: see `sandbox-sidecar trust`, "+
			"then again", ErrNotAllowable, display.Quote(p.File))
	}
	return nil
}

// fileOfUser is the user's file that decides about a list: the one that sets
// it, else the one that counts most.
func fileOfUser(s *compile.Snapshot, key string) (string, error) {
	from := s.SetIn(key)
	if s.ProjectState != nil && from == s.ProjectState.File {
		from = ""
	}
	if managed.Holds(from) {
		from = "" // the organisation's default, which the user's own file overrides
	}
	if from == policy.OriginEditor {
		return "", fmt.Errorf("%w: the editor's own settings decide about %q", ErrNotAllowable, key)
	}
	files := FilesToWrite(s)
	switch {
	case len(files) == 0:
		return "", fmt.Errorf("%w: the home directory is not known", ErrNotAllowable)
	case slices.Contains(files, from):
		return from, nil
	}
	return files[len(files)-1], nil
}

// FilesToWrite are the user's own files, lowest first, whether they exist or not.
// One that only tightens is none of them: it would bound what is written there.
func FilesToWrite(s *compile.Snapshot) []string {
	var files []string
	for _, state := range s.UserStates {
		if state.File != policy.OriginEditor && !state.Managed && state.Limited == "" {
			files = append(files, state.File)
		}
	}
	return files
}

// Allow writes a suggestion into the settings of a scope. It keeps every
// comment and line of the file and replaces the file in one step. It then
// trusts a project's file. Allowable permits that only if what is there is
// trusted already. Undo takes it back.
func (s *Store) Allow(scope Scope, projectDir string, suggestion explain.Suggestion) error {
	return untilSame(func() error {
		p, err := s.addition(scope, projectDir, suggestion)
		if err != nil || p.Present {
			return err
		}
		return s.write(p)
	})
}

// Grant allows what a suggestion says to new sessions of a project, until the
// store is closed. It writes nothing. InWindow knows it, Snapshot does not: what
// is written, trusted or explained by the files does not depend on it.
func (s *Store) Grant(projectDir string, suggestion explain.Suggestion) error {
	if err := Allowable(s.Snapshot(projectDir), ScopeWindow, suggestion); err != nil {
		return err
	}
	if err := s.remember(filepath.Clean(projectDir), suggestion); err != nil {
		return err
	}
	s.note(projectDir, allowed(suggestion, policy.OriginWindow))
	return nil
}

// remember adds a suggestion to what is granted for a project.
func (s *Store) remember(project string, suggestion explain.Suggestion) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, added := s.granted[project], compile.Addition{Key: suggestion.Key, Value: suggestion.Value}
	switch {
	case slices.Contains(list, added):
		return nil
	case len(list) == maxGranted:
		return fmt.Errorf("%w: %d entries are allowed for this window already", ErrNotAllowable, maxGranted)
	}
	s.granted[project] = append(slices.Clone(list), added)
	return nil
}

// InWindow is Snapshot with what was granted until the store is closed. New
// sessions start by it.
func (s *Store) InWindow(projectDir string) *compile.Snapshot {
	snapshot := s.Snapshot(projectDir)
	s.mu.Lock()
	defer s.mu.Unlock()
	if granted := s.granted[snapshot.ProjectDir]; len(granted) > 0 {
		return snapshot.With(granted)
	}
	return snapshot
}

// allowed is an entry that was written, for the audit trail.
func allowed(suggestion explain.Suggestion, file string) audit.Event {
	return audit.Event{Event: audit.Allowed, Files: []string{file}, Key: suggestion.Key, Value: suggestion.Value}
}

// WrittenTo is the file that Allow would write a suggestion into, as a snapshot
// knows it; empty if there is none.
func WrittenTo(s *compile.Snapshot, scope Scope, suggestion explain.Suggestion) string {
	if scope == ScopeProject {
		return filepath.Join(s.ProjectDir, ".zed", "settings.json")
	}
	file, err := fileOfUser(s, suggestion.Key)
	if err != nil {
		return ""
	}
	return file
}
