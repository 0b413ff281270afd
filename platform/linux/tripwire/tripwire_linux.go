package tripwire

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Kind is what happened to a path.
type Kind int

const (
	// Created: the path did not exist before.
	Created Kind = iota
	// Replaced: the file was replaced, moved or removed.
	Replaced
	// Written: the file, or something in the directory, was written.
	Written
	// Refused: git has tried to replace the file and failed.
	Refused
)

// Options of a tripwire.
type Options struct {
	// Paths are absolute and clean.
	Paths []string
	// Patterns are paths like Paths whose last name Match compares: names that
	// match and did not exist are reported as created.
	Patterns []string
	// Match is needed if there are patterns.
	Match func(pattern, name string) bool
	// Mounted is true if mounts already protect existing paths. Then only the
	// changes that mounts do not prevent are reported.
	Mounted bool
	// Refusals is true if git's attempts to replace an existing path are
	// reported, which its removed lock shows.
	Refusals bool
	// Report is called once for each path and kind, from another goroutine, one
	// call at a time, and never after Close.
	Report func(kind Kind, path string)
	// Refs are directories; see also Tripwire.Refs. Touched is called, as Report
	// is, whenever something may have changed in one of them. What ends in ".lock"
	// does not matter.
	Refs    []string
	Touched func()
}

// Tripwire watches paths. Its methods may be called from several goroutines.
type Tripwire struct {
	options Options

	mu       sync.Mutex // guards the fields below
	paths    map[string]bool
	wanted   map[string]map[string][]string // paths by directory and by a name in it that leads to them
	reported map[event]bool
	known    map[string]bool // what matched a pattern when the watch began
	refs     map[string]bool // those of Options.Refs that are watched, and later ones
	closed   bool
	pass     *pass // nil unless all paths are checked
}

type event struct {
	kind Kind
	path string
}

// New starts to watch. On an error nothing is watched.
func New(options Options) (*Tripwire, error) {
	t := &Tripwire{
		options: options, paths: map[string]bool{}, wanted: map[string]map[string][]string{},
		reported: map[event]bool{}, known: map[string]bool{}, refs: map[string]bool{},
	}
	if err := shared.open(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin()
	defer t.finish()
	for _, path := range options.Paths {
		t.paths[path] = t.exists(path)
		if err := t.arm(path); err != nil {
			shared.remove(t)
			return nil, err
		}
	}
	listed := map[string][]fsguard.Entry{}
	for _, pattern := range options.Patterns {
		if err := t.arm(pattern); err != nil {
			shared.remove(t)
			return nil, err
		}
		for _, path := range t.matches(pattern, listed) {
			t.known[path] = true
		}
	}
	t.armRefs(options.Refs)
	return t, nil
}

// maxRefs bounds the directories of refs that are watched: users may have few
// watches. What happens in others is found when the session ends.
const maxRefs = 128

// Refs watches more directories of refs; those that are watched already may be
// among them. It reports whether one is new.
func (t *Tripwire) Refs(dirs []string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.closed && t.armRefs(dirs)
}

// armRefs watches directories of refs, and reports whether one is new. t.mu is
// held.
func (t *Tripwire) armRefs(dirs []string) (more bool) {
	const mask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM | unix.IN_CLOSE_WRITE
	for _, dir := range dirs {
		if len(t.refs) < maxRefs && !t.refs[dir] && shared.watch(t, dir, mask) == nil {
			t.refs[dir], more = true, true
		}
	}
	return more
}

// matches lists the existing paths that a pattern matches. listed keeps what
// directories hold, so that each is listed once for many patterns.
func (t *Tripwire) matches(pattern string, listed map[string][]fsguard.Entry) []string {
	dir, last := filepath.Split(pattern)
	entries, known := listed[dir]
	if !known {
		var err error
		if entries, err = fsguard.ReadDir(dir, 0); err != nil {
			entries = nil
		}
		listed[dir] = entries
	}
	var list []string
	for _, entry := range entries {
		if t.options.Match(last, entry.Name) {
			list = append(list, dir+entry.Name)
		}
	}
	return list
}

// checkPattern reports what matches a pattern now and did not before. t.mu is
// held.
func (t *Tripwire) checkPattern(pattern string, listed map[string][]fsguard.Entry) {
	_ = t.arm(pattern)
	for _, path := range t.matches(pattern, listed) {
		if !t.known[path] {
			t.known[path] = true
			t.report(Created, path)
		}
	}
}

// Close reports everything that happened before it, checks each path once more
// and stops watching. Closing twice is harmless.
func (t *Tripwire) Close() {
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	if closed {
		return
	}
	shared.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.checkAll()
	t.closed = true
	shared.remove(t)
}

// pass is what a check of all paths has done: each directory is watched and
// listed once for all paths in it.
type pass struct {
	watched map[string]bool
	names   *fsguard.Names
}

// begin begins a check of all paths, which ends with finish. t.mu is held.
func (t *Tripwire) begin()  { t.pass = &pass{map[string]bool{}, fsguard.NewNames()} }
func (t *Tripwire) finish() { t.pass = nil }

// exists reports whether something is at a path, or was there in this pass: what
// comes later is an event, or found by the next pass. t.mu is held.
func (t *Tripwire) exists(path string) bool {
	if t.pass != nil && t.pass.names.Lacks(path) {
		return false
	}
	_, err := fsguard.Lstat(path)
	return err == nil
}

// arm watches the directory of a path or, if that does not exist, the nearest
// existing one above it. t.mu is held.
func (t *Tripwire) arm(path string) error {
	mask := uint32(unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF |
		unix.IN_DELETE_SELF)
	if !t.options.Mounted {
		mask |= unix.IN_CLOSE_WRITE
		// If path is a directory, every name in it counts.
		if err := t.watchName(path, "", path, mask); err != nil && !missing(err) {
			return err
		}
	}
	// Try again if a directory was created after it was found missing and
	// before the one above is watched.
	for range maxAttempts {
		below := path
		err := t.watchName(filepath.Dir(below), filepath.Base(below), path, mask)
		for err != nil && missing(err) && filepath.Dir(below) != "/" {
			below = filepath.Dir(below)
			err = t.watchName(filepath.Dir(below), filepath.Base(below), path, mask)
		}
		if err != nil || below == path || !isDir(below) {
			return err
		}
	}
	return nil
}

// maxAttempts bounds a race with a process that creates and removes a directory
// in a loop.
const maxAttempts = 8

func isDir(path string) bool {
	info, err := fsguard.Lstat(path)
	return err == nil && info.IsDir()
}

// watchName records that a name in a directory leads to a path. An empty name
// stands for every name. t.mu is held.
func (t *Tripwire) watchName(dir, name, path string, mask uint32) error {
	if t.pass == nil || !t.pass.watched[dir] {
		if err := shared.watch(t, dir, mask); err != nil {
			return err
		}
		if t.pass != nil {
			t.pass.watched[dir] = true
		}
	}
	names := t.wanted[dir]
	if names == nil {
		names = map[string][]string{}
		t.wanted[dir] = names
	}
	if !slices.Contains(names[name], path) {
		names[name] = append(names[name], path)
	}
	return nil
}

// handle processes an event in a directory.
func (t *Tripwire) handle(dir, name string, mask uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && len(t.refs) > 0 && (t.refs[dir] || mask&unix.IN_Q_OVERFLOW != 0) &&
		!strings.HasSuffix(name, ".lock") {
		t.options.Touched()
	}
	if mask&unix.IN_IGNORED != 0 {
		delete(t.refs, dir) // it is gone; another may take its place
	}
	if t.options.Mounted {
		mask &^= unix.IN_CLOSE_WRITE // of directories of refs
	}
	switch {
	case t.closed:
	case mask&(unix.IN_Q_OVERFLOW|unix.IN_MOVE_SELF|unix.IN_DELETE_SELF|unix.IN_UNMOUNT) != 0:
		for _, paths := range t.wanted[dir] {
			for _, path := range paths {
				if t.paths[path] && mask&(unix.IN_MOVE_SELF|unix.IN_DELETE_SELF) != 0 {
					t.report(Replaced, path)
				}
			}
		}
		t.checkAll()
	default:
		for _, path := range t.wanted[dir][name] {
			if slices.Contains(t.options.Patterns, path) {
				continue // see below
			}
			t.pathChanged(path, filepath.Join(dir, name), mask)
		}
		for _, pattern := range t.options.Patterns {
			at, last := filepath.Split(pattern)
			path := filepath.Join(dir, name)
			switch {
			case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) == 0:
			case filepath.Clean(at) == dir && t.options.Match(last, name) && !t.known[path]:
				t.known[path] = true
				t.report(Created, path)
			case slices.Contains(t.wanted[dir][name], pattern):
				t.checkPattern(pattern, map[string][]fsguard.Entry{}) // a directory on the way to it
			}
		}
		for _, path := range t.wanted[dir][""] {
			if mask&(unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE) != 0 {
				t.report(Written, path)
			}
		}
		// git writes a new configuration to NAME.lock and renames it. If a
		// mount on NAME prevents that, git removes NAME.lock.
		if locked, isLock := strings.CutSuffix(name, ".lock"); isLock && t.options.Refusals &&
			mask&unix.IN_DELETE != 0 {
			for _, path := range t.wanted[dir][locked] {
				if path == filepath.Join(dir, locked) && t.paths[path] {
					t.report(Refused, path)
				}
			}
		}
	}
}

// pathChanged processes an event at a path, or at a directory on the way to it.
// t.mu is held.
func (t *Tripwire) pathChanged(path, at string, mask uint32) {
	const moved = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	switch {
	case at != path:
		t.check(path)
	case t.paths[path] && mask&moved != 0:
		t.report(Replaced, path)
		t.check(path) // if it was a directory, a new one must be watched
	case t.paths[path] && mask&unix.IN_CLOSE_WRITE != 0:
		t.report(Written, path)
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		t.paths[path] = true
		t.report(Created, path)
		t.check(path)
	}
}

// checkAll finds changes that no event reported. t.mu is held.
func (t *Tripwire) checkAll() {
	t.begin()
	defer t.finish()
	for _, path := range t.options.Paths {
		t.check(path)
	}
	listed := map[string][]fsguard.Entry{}
	for _, pattern := range t.options.Patterns {
		t.checkPattern(pattern, listed)
	}
}

// check watches a path again, and reports it if it exists now. t.mu is held.
func (t *Tripwire) check(path string) {
	_ = t.arm(path) // on an error, Close still checks the path
	if !t.paths[path] && t.exists(path) {
		t.paths[path] = true
		t.report(Created, path)
	}
}

// report reports each kind once per path. A write to a file that was reported
// as created is not reported. t.mu is held.
func (t *Tripwire) report(kind Kind, path string) {
	if kind == Written && t.reported[event{Created, path}] {
		return
	}
	if !t.reported[event{kind, path}] {
		t.reported[event{kind, path}] = true
		t.options.Report(kind, path)
	}
}
