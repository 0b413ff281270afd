// Package source keeps the last good content of settings files and watches them.
//
// A [Store] holds the [State] of each file: its last content that could be used,
// and why the file as it is now cannot. [Store.State] reads a file if it may have
// changed; a goroutine reports changes of all files.
package source

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Options configure a store of settings files.
type Options struct {
	// Platform is "linux" or "darwin".
	Platform string
	// Files are read at once and always watched. Absolute.
	Files []string
	// Required says that the Files have to exist.
	Required bool
	// Managed says that the organisation's files count.
	Managed bool
	// Trust is the path of the list of trusted projects; "" if there is none.
	Trust string
	// Logger must not be nil.
	Logger *slog.Logger
	// Once leaves the files unwatched: OnChange is never called.
	Once bool
	// OnChange is called after files changed, from a goroutine of the store, one
	// call at a time. It may call State but not Close. May be nil.
	OnChange func(Change)
	// OnNotice is called with a sentence for the user's log. May be nil.
	OnNotice func(string)
	// Watching is how the store learns of changes; the zero value is the
	// system's way.
	Watching Watching
}

// Change lists the files that have other content than before, or became
// readable or unreadable.
type Change struct {
	// Files are sorted paths.
	Files []string
}

// Store keeps the last content of settings files and watches them. Its methods
// may be called from several goroutines.
type Store struct {
	options Options
	log     *slog.Logger
	trust   *trust.File

	mu      sync.Mutex       // guards the fields below; not held while a file is read
	files   map[string]*File // by path
	changed map[string]bool  // changed since the last report
	count   uint64           // of all changes, and of forgotten files
	managed []string         // the organisation's files that exist
	counted bool             // managed has been set

	wake chan struct{} // asks the goroutine to arm watches and to report changes
	stop func()        // idempotent
	done sync.WaitGroup
}

// Open reads the files and starts to watch them. The store must be closed.
func Open(options Options) *Store {
	s := &Store{
		options: options,
		log:     options.Logger,
		trust:   trust.Open(options.Trust),
		files:   map[string]*File{},
		changed: map[string]bool{},
		wake:    make(chan struct{}, 1),
	}
	for _, path := range options.Files {
		s.files[path] = newFile(path, options.Platform)
		s.files[path].required = options.Required
		s.files[path].current()
	}
	s.Managed()
	if options.Once {
		s.stop = func() {}
		return s
	}
	stopped := make(chan struct{})
	s.stop = sync.OnceFunc(func() { close(stopped) })
	s.done.Go(func() { s.watch(stopped) })
	return s
}

// Close stops watching and waits until no OnChange call is running. It must not
// be called from OnChange.
func (s *Store) Close() {
	s.stop()
	s.done.Wait()
}

// Recheck asks the goroutine to check every file soon.
func (s *Store) Recheck() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// State reads a file if it may have changed, and returns its state. A file that
// is new to the store is watched from now on.
func (s *Store) State(path string) State {
	file, fresh := s.source(path)
	state, changed := s.refresh(file)
	if fresh || changed {
		s.Recheck()
	}
	return state
}

// Trust returns the list of trusted projects as it is now.
func (s *Store) Trust() *trust.List {
	list, changed := s.refreshTrust()
	if changed {
		s.Recheck()
	}
	return list
}

// maxProjects bounds the files beside Options.Files that are kept and watched.
// An editor has a few folders open; a client that names a new directory for
// each command must not use up the user's watches.
const maxProjects = 64

// forgetOldest drops the file that was used longest ago, to leave room for one
// more. The lock is held.
func (s *Store) forgetOldest() {
	oldest, count := "", 0
	for path, source := range s.files {
		if slices.Contains(s.options.Files, path) || source.managed {
			continue
		}
		count++
		if oldest == "" || source.used.Before(s.files[oldest].used) {
			oldest = path
		}
	}
	if count >= maxProjects {
		delete(s.files, oldest)
		s.count++ // nothing reports its changes from now on
	}
}

// source returns the file of a path, and whether it is new.
func (s *Store) source(path string) (found *File, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files[path] == nil {
		s.forgetOldest()
		s.files[path], fresh = newFile(path, s.options.Platform), true
		s.files[path].managed = s.options.Managed && managed.Holds(path)
	}
	s.files[path].used = time.Now()
	return s.files[path], fresh
}

// refresh reads one file if it may have changed. The lock is not held meanwhile:
// the file may be on a file system that hangs.
func (s *Store) refresh(source *File) (state State, changed bool) {
	state, changed = source.current()
	if changed {
		s.mark(source.path)
	}
	return state, changed
}

// refreshTrust reads the list of trusted projects if it may have changed.
func (s *Store) refreshTrust() (list *trust.List, changed bool) {
	list, changed = s.trust.Current()
	if changed {
		s.mark(s.trust.Path)
	}
	return list, changed
}

// mark records that a file has changed since the last report.
func (s *Store) mark(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[path] = true
	s.count++
}

// Changes counts the changes of all files that the store has seen, and the
// files that it has forgotten. While it stays the same, so do the files.
func (s *Store) Changes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
