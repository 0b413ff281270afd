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
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

const (
	// debounce: one save is up to a dozen events within a few milliseconds
	// (write a temporary file, sync, chmod, rename); half a tenth of a second
	// is past all of them and below what a person notices.
	Debounce = 50 * time.Millisecond
	// debounceMost bounds the wait when events never pause, as a session can
	// arrange.
	debounceMost = 500 * time.Millisecond
	// pollInterval is for machines without a watch to spare. Spawns look at the
	// files themselves, so it only delays notifications.
	pollInterval = 2 * time.Second
)

// watcher is what the store needs of fsnotify; tests put others in its place.
type Watcher interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
	// told returns where events and errors arrive. Both are closed by Close.
	Channels() (<-chan fsnotify.Event, <-chan error)
}

// watching is how the store hears of changes.
type Watching struct {
	NewWatcher func() (Watcher, error)
	// deaf names the kind of file system of a directory where that does not
	// tell of every change; else it returns "".
	Unreliable func(dir string) string
}

// orSystem is the system's way of watching if none is given.
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

func NewSystemWatcher() (Watcher, error) {
	w, err := fsnotify.NewWatcher()
	return systemWatcher{w}, err
}

// watch is the store's goroutine: it keeps the watches on the files and reports
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
		// Events are drained by a goroutine of their own: while a watch is
		// added or OnChange runs, fsnotify must not block.
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
	woken      chan struct{}   // something relevant happened
	armed      map[string]bool // watched directories
	// names are the paths whose events matter. Read by the pump.
	names atomic.Pointer[map[string]bool]
}

func (w *watch) run(stopped <-chan struct{}) {
	timer := time.NewTimer(0) // the first round arms the watches and sees what changed since the files were read
	var first time.Time       // when the pending events began; zero: none are pending
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

// round arms the watches first and looks at the files second: what changes in
// between is seen either way.
func (w *watch) round() {
	w.arm()
	if files := w.store.takeChanged(); len(files) > 0 && w.store.options.OnChange != nil {
		w.store.options.OnChange(Change{Files: files})
	}
}

// arm watches every directory in which a name on the way to a settings file is
// looked up: of a file that does not exist yet, the nearest directory that
// does. A directory that appears while it is being done is found by the next
// pass.
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
				// To add a watch can hang there, too, and would tell half of
				// the changes.
				w.fallBack(unreliableError{dir, kind})
				continue
			}
			// Added again each time: behind the same name there may be another
			// directory by now, and adding twice does no harm.
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

// deafError is why a watch is not enough.
type unreliableError struct{ dir, kind string }

func (e unreliableError) Error() string {
	return fmt.Sprintf("%s is on a file system (%s) that does not report changes by other machines", e.dir, e.kind)
}

// fallBack polls, beside what watches there are, and says so.
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
			if names := w.names.Load(); names != nil && !(*names)[event.Name] {
				continue
			}
		case err, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			// The likely one is an overflow: events were lost, so anything may
			// have changed.
			w.store.log.Warn("settings: watch", "error", err)
		}
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// takeDirty looks at every file and returns those that changed since the last
// call.
func (s *Store) takeChanged() []string {
	s.mu.Lock()
	sources := slices.Collect(maps.Values(s.files))
	s.mu.Unlock()
	for _, source := range sources {
		s.refresh(source)
	}
	s.refreshTrust()
	s.mu.Lock()
	defer s.mu.Unlock()
	files := slices.Sorted(maps.Keys(s.changed))
	clear(s.changed)
	return files
}

// wanted returns the directories to watch and the names in them that matter, as
// they are now.
func (s *Store) wanted() (dirs, names map[string]bool) {
	s.mu.Lock()
	paths := slices.Collect(maps.Keys(s.files))
	s.mu.Unlock()
	if s.trust.Path != "" {
		paths = append(paths, s.trust.Path)
	}
	dirs, names = map[string]bool{}, map[string]bool{}
	r := resolve.NewView(resolve.OS)
	for _, path := range paths {
		target := r.Resolve(path)
		for i, step := range target.Steps {
			e := r.Entry(filepath.Join(step.Dir, step.Name))
			last := i == len(target.Steps)-1 || e.Err != nil
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
