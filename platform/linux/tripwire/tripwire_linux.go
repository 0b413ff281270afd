package tripwire

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
)

// Kind says what has happened to a path.
type Kind int

const (
	// Created: it did not exist before.
	Created Kind = iota
	// Replaced: what was there has been replaced, moved or removed.
	Replaced
	// Written: it, or what lies in it, was written.
	Written
	// Refused: git has tried to replace it and could not.
	Refused
)

// Options of a tripwire.
type Options struct {
	// Paths are absolute and clean.
	Paths []string
	// Mounted is true where mounts keep what exists: then only what they cannot
	// keep is told.
	Mounted bool
	// Report is told of each path and kind once. It is called from another
	// goroutine, one call at a time, and never after Close.
	Report func(kind Kind, path string)
}

// Tripwire watches paths. Its methods may be called from several goroutines.
type Tripwire struct {
	options Options

	mu       sync.Mutex // guards the fields below
	paths    map[string]bool
	wanted   map[string]map[string][]string // directory, name in it, and the paths that it leads to
	reported map[event]bool
	closed   bool
}

type event struct {
	kind Kind
	path string
}

// New starts to watch. On an error nothing is watched.
func New(options Options) (*Tripwire, error) {
	t := &Tripwire{options: options, paths: map[string]bool{}, wanted: map[string]map[string][]string{},
		reported: map[event]bool{}}
	if err := shared.acquire(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, path := range options.Paths {
		t.paths[path] = exists(path)
		if err := t.arm(path); err != nil {
			shared.remove(t)
			shared.release()
			return nil, err
		}
	}
	return t, nil
}

// Close waits for what has happened before it to be told, looks a last time
// and stops watching.
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
	shared.release()
}

func exists(path string) bool {
	_, err := fsguard.Lstat(path)
	return err == nil
}

// arm watches the directory of a path or, where that does not exist, the
// nearest one above that does. t.mu is held.
func (t *Tripwire) arm(path string) error {
	mask := uint32(unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MOVE_SELF | unix.IN_DELETE_SELF)
	if !t.options.Mounted {
		mask |= unix.IN_CLOSE_WRITE
		if err := t.watchName(path, "", path, mask); err != nil && !missing(err) { // a directory, of which every name counts
			return err
		}
	}
	// A directory that comes to be after it was found missing, and before the
	// one above is watched, is tried again.
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

// maxAttempts bounds a race with somebody who makes and removes a directory
// without end.
const maxAttempts = 8

func isDir(path string) bool {
	info, err := fsguard.Lstat(path)
	return err == nil && info.IsDir()
}

// watchName notes that a name in a directory leads to a path; an empty name stands
// for all. t.mu is held.
func (t *Tripwire) watchName(dir, name, path string, mask uint32) error {
	if err := shared.watch(t, dir, mask); err != nil {
		return err
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

// handle is told of an event in a directory.
func (t *Tripwire) handle(dir, name string, mask uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
			t.pathChanged(path, filepath.Join(dir, name), mask)
		}
		for _, path := range t.wanted[dir][""] {
			if mask&(unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE) != 0 {
				t.report(Written, path)
			}
		}
		// git writes a new configuration beside the old one and renames it.
		// Where the old one is mounted on it cannot, and tidies up.
		if locked, isLock := strings.CutSuffix(name, ".lock"); isLock && t.options.Mounted && mask&unix.IN_DELETE != 0 {
			for _, path := range t.wanted[dir][locked] {
				if path == filepath.Join(dir, locked) && t.paths[path] {
					t.report(Refused, path)
				}
			}
		}
	}
}

// pathChanged is told of an event at a path, or at what leads to it. t.mu is held.
func (t *Tripwire) pathChanged(path, at string, mask uint32) {
	const moved = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	switch {
	case at != path:
		t.check(path)
	case t.paths[path] && mask&moved != 0:
		t.report(Replaced, path)
		t.check(path) // where it was a directory, another is there to be watched
	case t.paths[path] && mask&unix.IN_CLOSE_WRITE != 0:
		t.report(Written, path)
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		t.paths[path] = true
		t.report(Created, path)
		t.check(path)
	}
}

// checkAll finds out what events did not tell. t.mu is held.
func (t *Tripwire) checkAll() {
	for _, path := range t.options.Paths {
		t.check(path)
	}
}

// check watches a path anew, and tells where it has come to be. t.mu is held.
func (t *Tripwire) check(path string) {
	_ = t.arm(path) // what cannot be watched any more is looked at in the end
	if !t.paths[path] && exists(path) {
		t.paths[path] = true
		t.report(Created, path)
	}
}

// report reports each thing once; that a file is written after it was created is
// no news. t.mu is held.
func (t *Tripwire) report(kind Kind, path string) {
	if kind == Written && t.reported[event{Created, path}] {
		return
	}
	if !t.reported[event{kind, path}] {
		t.reported[event{kind, path}] = true
		t.options.Report(kind, path)
	}
}
