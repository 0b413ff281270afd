package source

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

const (
	// Debounce is how long the store waits after an event. One save is up to a
	// dozen events within a few milliseconds (write a temporary file, sync,
	// chmod, rename). 50 ms is longer than all of them and shorter than a
	// person notices.
	Debounce = 50 * time.Millisecond
	// debounceMost bounds the wait if events never pause, which a session can
	// arrange.
	debounceMost = 500 * time.Millisecond
	// pollInterval is for machines that have no watches left. Spawns read the
	// files themselves, so it only delays notifications.
	pollInterval = 2 * time.Second
)

// Watcher is what the store needs of fsnotify. Tests replace it.
type Watcher interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
	// Channels returns where events and errors arrive. Close closes both.
	Channels() (<-chan fsnotify.Event, <-chan error)
}

// Watching is how the store learns of changes.
type Watching struct {
	NewWatcher func() (Watcher, error)
	// Unreliable names the kind of a directory's file system if the watcher
	// does not report every change there; else it returns "".
	Unreliable func(dir string) string
}

// orSystem completes the value by the system's way of watching.
func (w Watching) orSystem() Watching {
	if w.NewWatcher == nil {
		w.NewWatcher = NewSystemWatcher
	}
	if w.Unreliable == nil {
		w.Unreliable = unreliableFileSystem
	}
	return w
}

type systemWatcher struct{ *fsnotify.Watcher }

func (w systemWatcher) Channels() (<-chan fsnotify.Event, <-chan error) { return w.Events, w.Errors }

// NewSystemWatcher watches by inotify or kqueue.
func NewSystemWatcher() (Watcher, error) {
	w, err := fsnotify.NewWatcher()
	return systemWatcher{w}, err
}

// watch is the store's goroutine. It keeps the watches on the files and reports
// changes until stopped is closed.
func (s *Store) watch(stopped <-chan struct{}) {
	with := s.options.Watching.orSystem()
	w := &watch{store: s, unreliable: with.Unreliable, woken: make(chan struct{}, 1), armed: map[string]bool{}}
	watcher, err := with.NewWatcher()
	if err != nil {
		w.fallBack(err)
	} else {
		w.watcher = watcher
		pumped := make(chan struct{})
		// A goroutine of their own drains the events: while a watch is added or
		// OnChange runs, fsnotify must not block.
		go func() { defer close(pumped); w.pump() }()
		defer func() {
			if err := watcher.Close(); err != nil {
				s.log.Warn("settings: close watcher", "error", err)
			}
			<-pumped
		}()
	}
	w.run(stopped)
	if w.poll != nil {
		w.poll.Stop()
	}
}

type watch struct {
	store      *Store
	unreliable func(dir string) string
	watcher    Watcher         // nil: polling only
	poll       *time.Ticker    // nil: not polling
	woken      chan struct{}   // a relevant event arrived
	armed      map[string]bool // watched directories
	// names are the paths whose events matter. The pump reads them.
	names atomic.Pointer[map[string]bool]
}

func (w *watch) run(stopped <-chan struct{}) {
	timer := time.NewTimer(0) // the first round arms the watches and finds what changed since the files were read
	var first time.Time       // when the pending events began; zero if none are pending
	for {
		var tick <-chan time.Time
		if w.poll != nil {
			tick = w.poll.C
		}
		select {
		case <-stopped:
			timer.Stop()
			return
		case <-w.store.wake:
		case <-w.woken:
		case <-tick:
			w.round()
			continue
		case <-timer.C:
			first = time.Time{}
			w.round()
			continue
		}
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		timer.Reset(max(0, min(Debounce, first.Add(debounceMost).Sub(now))))
	}
}

// round arms the watches first and reads the files second, so that a change in
// between is not lost.
func (w *watch) round() {
	w.arm()
	if files := w.store.takeChanged(); len(files) > 0 && w.store.options.OnChange != nil {
		w.store.options.OnChange(Change{Files: files})
	}
}

// arm watches every directory in which a name on the way to a settings file is
// looked up. For a file that does not exist yet, that is the nearest directory
// that does. The next pass finds a directory that appears meanwhile.
func (w *watch) arm() {
	if w.watcher == nil {
		return
	}
	for range 5 {
		dirs, names := w.store.wanted()
		w.names.Store(&names)
		for dir := range w.armed {
			if !dirs[dir] {
				delete(w.armed, dir)
				if err := w.watcher.Remove(dir); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
					w.store.log.Debug("settings: stop watching", "dir", dir, "error", err)
				}
			}
		}
		for dir := range dirs {
			if kind := fsguard.Kind(dir); kind != "" {
				// Adding a watch can hang there, too, and it would miss half of
				// the changes.
				w.fallBack(unreliableError{dir, kind})
				continue
			}
			// Added again each time: the name may belong to another directory
			// by now, and adding twice does no harm.
			switch err := w.watcher.Add(dir); {
			case err == nil:
				w.armed[dir] = true
				if kind := w.unreliable(dir); kind != "" {
					w.fallBack(unreliableError{dir, kind})
				}
			case !textfile.Missing(err):
				w.fallBack(err)
			}
		}
		if again, _ := w.store.wanted(); maps.Equal(again, dirs) {
			return
		}
	}
}

// unreliableError is why a watch is not enough.
type unreliableError struct{ dir, kind string }

func (e unreliableError) Error() string {
	return fmt.Sprintf("%s is on a file system (%s) that does not report changes by other machines", e.dir, e.kind)
}

// fallBack polls beside the watches there are, and logs why.
func (w *watch) fallBack(err error) {
	if w.poll != nil {
		return
	}
	hint := ""
	var deaf unreliableError
	if !errors.As(err, &deaf) {
		hint = "; on Linux fs.inotify.max_user_watches or max_user_instances may be used up"
	}
	message := fmt.Sprintf("settings files are checked every %s, because they cannot be watched: %v%s", pollInterval,
		err, hint)
	w.store.log.Warn("settings: " + message)
	if w.store.options.OnNotice != nil {
		w.store.options.OnNotice(message)
	}
	w.poll = time.NewTicker(pollInterval)
}

// pump drains the watcher until it is closed.
func (w *watch) pump() {
	events, failures := w.watcher.Channels()
	for events != nil {
		select {
		case event, ok := <-events:
			if !ok {
				return
			}
			if names := w.names.Load(); names != nil && !(*names)[event.Name] &&
				filepath.Dir(event.Name) != managed.DropIns {
				continue
			}
		case err, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			// Probably an overflow: events were lost, so anything may have
			// changed.
			w.store.log.Warn("settings: watch", "error", err)
		}
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// takeChanged checks every file and returns those that changed since the last
// call.
func (s *Store) takeChanged() []string {
	s.mu.Lock()
	sources := slices.Collect(maps.Values(s.files))
	s.mu.Unlock()
	for _, source := range sources {
		s.refresh(source)
	}
	s.refreshTrust()
	s.Managed()
	s.mu.Lock()
	defer s.mu.Unlock()
	files := slices.Sorted(maps.Keys(s.changed))
	clear(s.changed)
	return files
}

// wanted returns the directories to watch and the names in them that matter.
func (s *Store) wanted() (dirs, names map[string]bool) {
	s.mu.Lock()
	paths := slices.Collect(maps.Keys(s.files))
	s.mu.Unlock()
	if s.trust.Path != "" {
		paths = append(paths, s.trust.Path)
	}
	if s.options.Managed {
		paths = append(paths, filepath.Join(managed.DropIns, "settings.json")) // so that new files are noticed
	}
	dirs, names = map[string]bool{}, map[string]bool{}
	r := resolve.NewView(resolve.OS)
	for _, path := range paths {
		steps := r.Steps(path)
		for i, step := range steps {
			e := r.Entry(filepath.Join(step.Dir, step.Name))
			last := i == len(steps)-1 || e.Err != nil
			names[filepath.Join(step.Dir, step.Name)] = true
			names[step.Dir] = true
			if watchAncestors || last || e.Target != "" {
				dirs[step.Dir] = true
			}
			if e.Err != nil {
				break
			}
		}
	}
	return dirs, names
}
