//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// recovery is what a tracker leaves to others when it dies: its journal, and
// the watchdog that reads it. Without a state directory the journal is in
// memory, for the watchdog alone; without a watchdog there is none then, and
// every method does nothing.
type recovery struct {
	options Options

	mu       sync.Mutex       // guards the fields below
	journal  *journal.Journal // made with the first record or group
	watchdog *watchdog        // made with the first group; nil without Options.Watchdog
	warning  string           // what the state of the journal takes from every session; empty where nothing
	tried    time.Time        // when the state directory was last tried in vain
	closed   bool
	removals int           // groups whose directories are being removed
	removed  chan struct{} // closed when there is none; nil where there never was one
}

const (
	// stateRetry is the pause between two attempts to use a state directory
	// that could not be used.
	stateRetry = 2 * time.Second
	// unnamedJournal stands for the name of a journal in memory: no file has
	// it.
	unnamedJournal = "unnamed" + journal.Suffix
	// removeAtOnce is how long a group's end waits for its directories to be
	// removed; most are empty.
	removeAtOnce = 50 * time.Millisecond
	// removeAtEnd is how long the tracker's end waits for the rest.
	removeAtEnd = time.Second
	// fileEnd bounds, at the tracker's end, what touches a file system that may
	// hang.
	fileEnd = 2 * time.Second
)

// open makes the watchdog on first use, and the journal that it is to carry
// out.
func (e *recovery) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openJournal(); err != nil || e.journal == nil {
		return err
	}
	e.restore()
	if e.watchdog == nil && e.options.Watchdog != nil {
		w := &watchdog{command: e.options.Watchdog, log: e.options.logger()}
		e.journal.OnMove(func(path string, reader *os.File) { w.follow(e.pathFor(path), reader) })
		e.watchdog = w
	}
	if e.watchdog != nil {
		return e.watchdog.use()
	}
	return nil
}

// pathFor is what the watchdog takes for the journal's path: what it names lies
// beside.
func (e *recovery) pathFor(path string) string {
	if path == "" {
		return filepath.Join(e.options.StateDir, unnamedJournal)
	}
	return path
}

// openJournal makes the journal on first use. The lock is held.
func (e *recovery) openJournal() (err error) {
	switch {
	case e.closed:
		return fmt.Errorf("track processes: %w", os.ErrClosed)
	case e.journal != nil || e.options.StateDir == "" && e.options.Watchdog == nil:
		return nil
	case e.options.StateDir != "":
		if e.journal, err = journal.New(e.options.StateDir); err == nil {
			return nil
		}
		if err := makeStateDir(e.options.StateDir); err == nil {
			if e.journal, err = journal.New(e.options.StateDir); err == nil {
				return nil
			}
		}
	default:
		err = errors.New("there is no state directory")
	}
	e.reportUnusable(err)
	e.journal, err = journal.NewMemory()
	return err
}

// restore brings the journal back to the state directory, if somebody has
// removed that or it could not be used. The lock is held.
func (e *recovery) restore() {
	dir := e.options.StateDir
	if dir == "" || e.journal == nil || e.journal.InPlace() || time.Since(e.tried) < stateRetry {
		return
	}
	err := makeStateDir(dir)
	if err == nil {
		err = e.journal.MoveTo(dir)
	}
	if err != nil {
		e.reportUnusable(err)
		// What was written has no name any more; a file that nobody can find is
		// as good as one in memory, and a full file system takes no more.
		_ = e.journal.DropFile()
		return
	}
	e.options.logger().Warn("the state directory was gone or could not be used, and is in use again", "dir", dir)
	e.warning = ""
}

// reportUnusable notes that the journal cannot be where the next sidecar would find it.
// The lock is held.
func (e *recovery) reportUnusable(err error) {
	e.tried = time.Now()
	if e.warning == "" {
		e.options.logger().Warn("the state directory cannot be used: if sidecar and watchdog are killed together, "+
			"processes of sessions are left",
			"dir", e.options.StateDir, "error", err)
	}
	e.warning = "the state directory cannot be used: if sidecar and watchdog are killed together, this session goes " +
		"on; free space or make it writable"
}

// warn says what the state of the journal takes from a session, and mends it if
// it can: a group may be older than the state directory's end.
func (e *recovery) warn() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restore()
	return e.warning
}

// release is called as often as open succeeded.
func (e *recovery) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchdog != nil {
		e.watchdog.release()
	}
}

// write notes something before it comes to be. Where the file system takes no
// more, the journal goes on in memory.
func (e *recovery) write(r journal.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed { // afterwards nothing comes to be any more
		if err := e.openJournal(); err != nil {
			return err
		}
	}
	if e.journal == nil {
		return nil
	}
	err := e.journal.Write(r)
	if err == nil || errors.Is(err, os.ErrClosed) {
		return err
	}
	e.reportUnusable(err)
	if err := e.journal.MoveToMemory(); err != nil {
		return err
	}
	return e.journal.Write(r)
}

// close ends the watchdog and removes the journal. Nothing may be left that
// they are for, but directories, which a watchdog removes that is left alone,
// or else the next sidecar.
func (e *recovery) close() error {
	e.mu.Lock()
	ended := e.removed
	e.mu.Unlock()
	removed := finishes(removeAtEnd, func() error {
		if ended != nil {
			<-ended
		}
		return nil
	}) == nil
	e.mu.Lock()
	e.closed = true
	j, w := e.journal, e.watchdog
	e.journal = nil
	e.mu.Unlock()
	if !removed {
		e.options.logger().Info("private directories of sessions are still being removed; the watchdog goes on with " +
			"that, or the next sidecar")
	}
	switch {
	case removed && w != nil:
		w.close()
	case w != nil:
		defer w.leave() // once the lock is free
	}
	switch {
	case j == nil:
		return nil
	case removed:
		return finishes(fileEnd, j.Close)
	}
	return j.Leave()
}

// remove removes directories, and tells when that has come to its end.
func (e *recovery) remove(dirs []string) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.removals == 0 {
		e.removed = make(chan struct{})
	}
	e.removals++
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, dir := range dirs {
			err := removeTree(context.Background(), dir)
			if err == nil {
				err = e.write(journal.Ended(kindDirectory, dir))
			}
			if err != nil {
				e.options.logger().Warn("private directory of a session not removed", "dir", dir, "error", err)
			}
		}
		e.release() // a watchdog is there as long as something is
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.removals--; e.removals == 0 {
			close(e.removed)
		}
	}()
	return done
}

// errHangs means that a file system has not answered.
var errHangs = errors.New("the file system does not answer")

// finishes does something, and returns without it after some time.
func finishes(within time.Duration, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errHangs
	}
}
