package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// Options configure a Store. The zero value reads the standard files of the
// current user's home directory.
type Options struct {
	// UserPath replaces the user's two standard files. It is absolute; empty
	// means the standard files. If the file does not exist, no session starts.
	UserPath string
	// Editor is one more layer over the user's own files, as trusted as they
	// are; nil if there is none.
	Editor []byte
	// Command is a layer over all others, a trusted project's included: what
	// the command line says. nil if there is none.
	Command []byte
	// Agent is the agent that the command line names, whose set counts beside
	// those of the settings. nil if there is none.
	Agent *compile.Agent
	// Env holds "NAME=value" entries, for $VAR, HOME and XDG_CONFIG_HOME. The
	// process's own environment is not read.
	Env []string
	// Home is the user's home directory; empty: HOME from Env, else the
	// system's user database.
	Home string
	// Account is the home directory in the system's user database; empty: Home,
	// else what the database says.
	Account string
	// Platform is "linux" or "darwin"; empty means the one this program was
	// built for.
	Platform string
	// Guarded are further paths that no grant may open to sessions for writing:
	// the program itself, its state. Absolute.
	Guarded []string
	// HostsGap says why this machine cannot tell hosts apart; "" if it can. It is
	// called only if it matters. May be nil.
	HostsGap func() string
	// Complete adds to a policy what each session of a kind has for itself. May
	// be nil.
	Complete compile.Completion
	// Recorder takes what is trusted and changed for an audit trail. May be nil.
	Recorder audit.Recorder
	// Logger may be nil.
	Logger *slog.Logger
	// Once leaves the files unwatched, for a program that asks once and ends.
	// OnChange is never called.
	Once bool
	// OnChange is called after settings files changed, from a goroutine of the
	// store, one call at a time. It may call Snapshot but not Close. May be
	// nil.
	OnChange func(Change)
	// OnNotice is called with a sentence for the user's log, from a goroutine
	// of the store: that files are polled, and why. May be nil.
	OnNotice func(string)
}

// Change lists the settings files that have other content than before, or became
// readable or unreadable.
type Change = source.Change

// Store holds the settings files: their last good content, and a watch on each.
// Its methods may be called from several goroutines.
type Store struct {
	options Options
	log     *slog.Logger
	host    resolve.Host
	users   userFiles
	notes   notes
	files   []string // all of the user, lowest first
	editor  *source.State
	command *source.State
	sources *source.Store
	askGit  compile.AskGit // nil: git is not asked
	parents *git.Asker     // asks about repositories above projects
	memory  *compile.Memory
	fs      resolve.FS
	maxAge  time.Duration     // of a snapshot that Latest returns again
	audited *compile.Snapshot // before the last change; nil: changes are not noted
	opened  chan struct{}     // closed once Open has set everything

	mu      sync.Mutex                    // guards what follows
	latest  map[string]latest             // the newest snapshot of each project directory
	granted map[string][]compile.Addition // by project directory; see Grant
	asked   []string                      // directories of projects, in which sessions may have been
}

// latest is a snapshot, with the time and the store's count of changes before it
// was made.
type latest struct {
	snapshot *compile.Snapshot
	changes  uint64
	made     time.Time
}

// Open reads the user's settings and starts to watch them. A file that cannot
// be read is a diagnostic of the snapshots. An error means that the options are
// wrong, or that the user database does not answer. The store must be closed.
func Open(options Options) (*Store, error) { return open(options, source.Watching{}) }

// open is Open for tests, which watch in other ways.
func open(options Options, with source.Watching) (*Store, error) {
	if options.UserPath != "" && !filepath.IsAbs(options.UserPath) {
		return nil, fmt.Errorf("open settings: user settings path %s: not absolute", display.Quote(options.UserPath))
	}
	if options.Platform == "" {
		options.Platform = source.Platform
	}
	if document.PlatformBlock(options.Platform) == "" {
		return nil, fmt.Errorf("open settings: platform %q: not known", options.Platform)
	}
	log := options.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	host, err := hostOf(options)
	if err != nil {
		return nil, err
	}
	s := &Store{
		options: options, log: log, host: host,
		latest: map[string]latest{}, granted: map[string][]compile.Addition{}, maxAge: maxAge, fs: resolve.OS,
		opened: make(chan struct{}), parents: new(git.Asker), memory: compile.NewMemory(),
	}
	if !options.Once {
		s.askGit = s.parents.Ask // one command does not wait for another program
		s.fs.Dirs, s.fs.Modes = resolve.RememberDirs(), resolve.RememberModes()
		s.fs.Find, s.fs.Links = resolve.RememberFind(), resolve.RememberLinks()
	}
	s.users = userFilesOf(options.UserPath, s.host)
	s.notes = notesOf(s.host)
	s.files = s.users.all()
	if options.Editor != nil {
		s.editor = givenState(policy.OriginEditor, options.Editor, options.Platform)
	}
	if options.Command != nil {
		s.command = givenState(policy.OriginCommand, options.Command, options.Platform)
	}
	s.sources = source.Open(source.Options{
		Platform: options.Platform, Files: s.files, Required: options.UserPath != "", Managed: true,
		Trust:  s.host.Kept().Trust(),
		Logger: log, Once: options.Once, OnChange: s.onChange, OnNotice: options.OnNotice, Watching: with,
	})
	if options.Recorder != nil && !options.Once {
		s.audited = s.Snapshot("")
	}
	close(s.opened)
	return s, nil
}

// hostOf is the machine of a user, whose home directory is decided.
func hostOf(options Options) (resolve.Host, error) {
	host := resolve.NewHost(options.Platform, options.Home, options.Env)
	if host.Account = cmp.Or(options.Account, options.Home); host.Account == "" {
		var err error
		if host.Account, err = managed.Home(); err != nil {
			return host, fmt.Errorf("open settings: %w", err)
		}
	}
	if decides(host) {
		host = host.Decide()
	}
	return host, nil
}

// onChange notes a change, and passes it on. One that ends the audit trail is
// its last line.
func (s *Store) onChange(change Change) {
	<-s.opened
	if s.audited != nil {
		before, now := s.audited, s.Snapshot("")
		s.audited = now
		_ = s.options.Recorder.Record(before.Audit().With(now.Audit()),
			audit.Event{Event: audit.SettingsChanged, Files: change.Files})
	}
	if s.options.OnChange != nil {
		s.options.OnChange(change)
	}
}

// note notes what belongs to no session for the audit trail.
func (s *Store) note(projectDir string, event audit.Event) {
	if s.options.Recorder == nil {
		return
	}
	event.Project = projectDir
	_ = s.options.Recorder.Record(s.Latest("").Audit(), event) // only a spawn waits for the result
}

// Close stops watching and waits until no OnChange call is running. It must not
// be called from OnChange.
func (s *Store) Close() error {
	s.sources.Close()
	return nil
}

// FirstTime reports whether the user has not yet been told a note of that name,
// and remembers that it was told now. If it cannot remember, it is the first
// time.
func (s *Store) FirstTime(note string) bool {
	path := s.host.Kept().Told(note)
	if path == "" {
		return true
	}
	if err := fsguard.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return true
	}
	return !errors.Is(fsguard.Create(path, nil, 0o600), fs.ErrExist)
}

// Snapshot returns the settings that hold now for a session in projectDir, an
// absolute path; "" leaves out the project's file. It checks every file itself,
// so that a save before the call counts.
func (s *Store) Snapshot(projectDir string) *compile.Snapshot {
	changes, made := s.sources.Changes(), time.Now()
	in := compile.Input{
		Host: s.host, FS: s.fs, AskGit: s.askGit, AskParent: s.parents.Refuses, OwnPaths: s.options.Guarded,
		HostsGap: s.options.HostsGap, Command: s.command, Agent: s.options.Agent,
	}
	if filepath.IsAbs(projectDir) {
		in.ProjectDir = filepath.Clean(projectDir)
	} else if projectDir != "" {
		s.log.Error("settings: project directory is not absolute: its settings and its grant are left out",
			"projectDir", projectDir)
	}
	in.UserStates = s.sources.Managed()
	in.UserStates = append(in.UserStates, s.userLayer(resolve.NewView(s.fs), in.ProjectDir).states...)
	if s.editor != nil {
		in.UserStates = append(in.UserStates, *s.editor)
	}
	in.Trust = s.sources.Trust()
	if in.ProjectDir != "" {
		path := filepath.Join(in.ProjectDir, ".zed", "settings.json")
		// If the project's directory is that of the user's own file, the file
		// is the user's.
		if !slices.Contains(s.files, path) {
			state := s.sources.State(path)
			in.ProjectState = &state
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latest) >= maxLatest {
		clear(s.latest)
	}
	s.addAsked(in.ProjectDir)
	in.Others = s.asked[:len(s.asked):len(s.asked)]
	snapshot := compile.New(in, s.memory, s.options.Complete)
	s.latest[projectDir] = latest{snapshot, changes, made}
	return snapshot
}

// Remember says that sessions may run in these projects, and may have before.
// No symlink in one of them leads to a project. Snapshot remembers its own.
func (s *Store) Remember(projectDirs ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range projectDirs {
		s.addAsked(dir)
	}
}

// addAsked is Remember for one project. The caller holds mu.
func (s *Store) addAsked(dir string) {
	if filepath.IsAbs(dir) && len(s.asked) < maxAsked && !slices.Contains(s.asked, filepath.Clean(dir)) {
		s.asked = append(s.asked, filepath.Clean(dir))
	}
}

const (
	// maxLatest bounds the snapshots that are kept.
	maxLatest = 64
	// maxAsked bounds the directories of projects that are remembered.
	maxAsked = 1024
	// maxAge bounds how old a snapshot may be for Latest. No watch reports what
	// else its evaluation depends on: symlinks, repositories, and which
	// credentials exist. It lets a burst of denials share one evaluation.
	maxAge = 2 * time.Second
)

// Latest is the newest snapshot that was made for a project directory. It reads
// no file: the watch says whether one has changed since. If one has, if the
// snapshot is older than two seconds, or if there is no watch, Latest is
// Snapshot.
func (s *Store) Latest(projectDir string) *compile.Snapshot {
	s.mu.Lock()
	kept, found := s.latest[projectDir]
	s.mu.Unlock()
	if !found || s.options.Once || time.Since(kept.made) > s.maxAge || kept.changes != s.sources.Changes() {
		return s.Snapshot(projectDir)
	}
	return kept.snapshot
}

// Recent is the newest snapshot that was made for a project directory, if it is not
// older than two seconds, whether files are watched or not; else it is Snapshot.
func (s *Store) Recent(projectDir string) *compile.Snapshot {
	s.mu.Lock()
	kept, found := s.latest[projectDir]
	s.mu.Unlock()
	if !found || time.Since(kept.made) > s.maxAge {
		return s.Snapshot(projectDir)
	}
	return kept.snapshot
}

// givenState is a layer that is no file.
func givenState(origin string, data []byte, platform string) *source.State {
	block, problem := document.Decode(data, platform, document.Sidecar)
	return &source.State{File: origin, Exists: true, Good: block, Problem: problem}
}
