package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
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
	if known := key == "toolchains" || key == "allowed_hosts" || strings.HasPrefix(key, "additional_"); !known ||
		!document.IsList(suggestion.Key) {
		return fmt.Errorf("%w: %q is no list that can be added to", ErrNotAllowable, suggestion.Key)
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
	case !p.Trusted && len(p.Asks) > 0:
		// To write into the file means to trust it, with everything that
		// somebody else has written there.
		return fmt.Errorf("%w: %s asks for more than it gets, and is not trusted", ErrNotAllowable,
			display.Quote(p.File))
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
// trusts a project's file, which Allowable must permit.
func (s *Store) Allow(scope Scope, projectDir string, suggestion explain.Suggestion) error {
	snapshot := s.Snapshot(projectDir)
	if err := Allowable(snapshot, scope, suggestion); err != nil {
		return err
	}
	kind, name := snapshot.KindOf(suggestion.Key)
	merged := snapshot.MergedFor(kind)
	base := merged.List(name)
	if slices.Contains(base, suggestion.Value) {
		return nil
	}
	if scope == ScopeUser {
		file, err := fileOfUser(snapshot, suggestion.Key)
		if err != nil {
			return err
		}
		if err := s.allowUser(file, suggestion, base); err != nil {
			return err
		}
		s.note(projectDir, allowed(suggestion, file))
		return nil
	}
	digest, err := s.allowProject(snapshot.ProjectDir, suggestion, base)
	if err != nil {
		return err
	}
	s.note(projectDir, allowed(suggestion, snapshot.ProjectState.File))
	_, err = s.Trust(projectDir, digest)
	return err
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

func (s *Store) allowUser(file string, suggestion explain.Suggestion, base []string) error {
	// If the file is a symlink, as dotfile managers make it, its target is
	// replaced.
	real, err := fsguard.EvalSymlinks(file)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = file, fsguard.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	change := entry{filepath.Base(real), s.options.Platform, suggestion.Key, suggestion.Value, base}
	if _, err := change.write(writeInto, filepath.Dir(real)); err != nil {
		return fmt.Errorf("write settings: %s: %w", display.Quote(file), err)
	}
	s.sources.State(file) // so that the next denial is answered by the new content
	return nil
}

// allowProject changes the project's file and returns the digest of the new
// content. Sessions can write the project, so it follows no symlink out of the
// project.
func (s *Store) allowProject(
	projectDir string, suggestion explain.Suggestion, base []string,
) (digest string, err error) {
	change := entry{"settings.json", s.options.Platform, suggestion.Key, suggestion.Value, base}
	data, err := change.write(writeIntoProject, projectDir)
	if err != nil {
		return "", fmt.Errorf("write the project's settings: %s: %w",
			display.Quote(filepath.Join(projectDir, ".zed", "settings.json")), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// entry is what to add to a file of a directory.
type entry struct {
	Name, Platform, Key, Value string
	Base                       []string
}

func (e entry) write(call fsguard.Call, dir string) ([]byte, error) {
	order, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return call(dir, order)
}

// writeInto adds an entry to a file in a directory, and returns the new content.
var writeInto = fsguard.Define("write settings", func(path string, order []byte) ([]byte, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return addEntry(dir, order)
})

// writeIntoProject is writeInto the directory of a project's settings, which it
// makes.
var writeIntoProject = fsguard.Define("write the project's settings", func(path string, order []byte) ([]byte, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.Mkdir(".zed", 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, err := root.OpenRoot(".zed")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return addEntry(dir, order)
})

func addEntry(dir *os.Root, order []byte) ([]byte, error) {
	var e entry
	if err := json.Unmarshal(order, &e); err != nil {
		return nil, err
	}
	name := e.Name
	mode := fs.FileMode(0o644)
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, textfile.ErrNotRegular
	case info.Size() > textfile.MaxSize:
		return nil, textfile.ErrTooLarge
	default:
		mode = info.Mode().Perm()
	}
	data, err := dir.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	changed, err := document.AddEntry(data, e.Platform, e.Key, e.Value, e.Base)
	if err != nil {
		return nil, err
	}
	temp := name + ".sandbox-sidecar"
	_ = dir.Remove(temp) // left by a process that was killed halfway
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Remove(temp) }() // already gone if all went well
	_, err = file.Write(changed)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	return changed, dir.Rename(temp, name)
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
