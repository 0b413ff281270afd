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

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// recovery is what ends a tracker's sessions if it dies: its journal, and the
// watchdog that reads it. Without a state directory the journal is in memory,
// for the watchdog alone, and also if that is on a file system that may not
// answer: every session writes the journal, and the sidecar's end closes it.
// Without both, there is no journal and every method does nothing.
type recovery struct {
	options Options

	mu        sync.Mutex       // guards the fields below
	journal   *journal.Journal // made with the first record or group
	watchdog  *watchdog        // made with the first group; nil without Options.Watchdog
	warning   string           // for every session, if the journal is not in the state directory; empty otherwise
	tried     time.Time        // when the state directory was last tried without success
	closed    bool
	shares    map[*groupState]bool // groups whose directories were not given back
	removals  int                  // groups whose directories are being removed
	unremoved bool                 // a file system did not answer when one was removed
	removed   chan struct{}        // closed when removals is 0; nil if there never was one
}

const (
	// stateRetry is the pause between two attempts to use a state directory
	// that could not be used.
	stateRetry = 2 * time.Second
	// unnamedJournal replaces the name of a journal in memory: no file has it.
	unnamedJournal = "unnamed" + journal.Suffix
	// removeAtOnce is how long a group's end waits for its directories to be
	// removed; most are empty.
	removeAtOnce = 50 * time.Millisecond
	// removeAtEnd is how long the tracker's end waits for the rest.
	removeAtEnd = time.Second
	// fileEnd bounds, at the tracker's end, calls to a file system that may not
	// answer.
	fileEnd = 2 * time.Second
)

// open makes the journal on first use, and keeps the watchdog that reads it.
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
		e.watchdog.use()
	}
	return nil
}

// guard makes sure that the watchdog runs. It is called after open.
func (e *recovery) guard() error {
	e.mu.Lock()
	w := e.watchdog
	e.mu.Unlock()
	if w == nil {
		return nil
	}
	return w.guard()
}

// pathFor is the journal's path for the watchdog, which expects the groups'
// directories beside it.
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
	case e.remote():
		e.options.logger().Warn("the state directory is remote: a crash may leave processes; "+
			"set XDG_RUNTIME_DIR to a local directory", "dir", e.options.StateDir)
		e.journal, err = journal.NewMemory()
		return err
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

// remote reports whether the state directory is on a file system that may not
// answer.
func (e *recovery) remote() bool {
	return e.options.StateDir != "" && !fsguard.Local(e.options.StateDir)
}

// restore moves the journal back to the state directory, if that was removed or
// could not be used. The lock is held.
func (e *recovery) restore() {
	dir := e.options.StateDir
	if dir == "" || e.journal == nil || e.remote() || e.journal.InPlace() || time.Since(e.tried) < stateRetry {
		return
	}
	err := makeStateDir(dir)
	if err == nil {
		err = e.journal.MoveTo(dir)
	}
	if err != nil {
		e.reportUnusable(err)
		// The file has no name any more, so nobody can find it. Memory is as
		// good, and a full file system takes no more writes.
		_ = e.journal.DropFile()
		return
	}
	e.options.logger().Warn("the state directory was missing or unusable, and is in use again", "dir", dir)
	e.warning = ""
}

// reportUnusable reports that the next sidecar will not find the journal. The
// lock is held.
func (e *recovery) reportUnusable(err error) {
	e.tried = time.Now()
	if e.warning == "" {
		e.options.logger().Warn("the state directory cannot be used: after a crash, processes may be left",
			"dir", e.options.StateDir, "error", err)
	}
	e.warning = "the state directory cannot be used: processes may outlive a crash; free space, or make it writable"
}

// warn returns the warning for a session. It first tries to fix the cause: a
// group may be older than the loss of the state directory.
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

// write notes something before it exists. If the file system takes no more, the
// journal continues in memory.
func (e *recovery) write(r journal.Record) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed { // nothing is made after the end
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

// close ends the watchdog and removes the journal. Every process must have
// ended. If directories are still being removed, the watchdog continues that,
// or the next sidecar.
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
	removed = removed && !e.unremoved
	j, w := e.journal, e.watchdog
	e.journal = nil
	e.mu.Unlock()
	if !removed {
		e.options.logger().Info("directories of sessions are still being removed; the watchdog or the next " +
			"sidecar continues")
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

// share makes the state of a new group.
func (e *recovery) share() *groupState {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shares == nil {
		e.shares = map[*groupState]bool{}
	}
	b := &groupState{recovery: e}
	e.shares[b] = true
	return b
}

// forget is called when a group gives its directories back.
func (e *recovery) forget(b *groupState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.shares, b)
}

// remove removes directories, and closes the channel when it has finished.
func (e *recovery) remove(dirs []notedDir) <-chan struct{} {
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
			err := removeGuarded(context.Background(), dir.path)
			if err == nil {
				err = e.write(journal.Ended(dir.kind, dir.path))
			}
			if errors.Is(err, fsguard.ErrNoAnswer) {
				e.mu.Lock()
				e.unremoved = true
				e.mu.Unlock()
			}
			if err != nil {
				e.options.logger().Warn("cannot remove the private directory of a session", "dir", dir, "error", err)
			}
		}
		e.release() // a watchdog runs as long as anything is left
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

// finishes calls a function, and returns without its result after some time. It
// looks from time to time, and counts that: a process that the machine leaves no
// time looks less often, and so waits longer.
func finishes(within time.Duration, do func() error) error {
	const looks = 20
	done := make(chan error, 1)
	go func() { done <- do() }()
	ticker := time.NewTicker(within / looks)
	defer ticker.Stop()
	for range looks {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
		}
	}
	select {
	case err := <-done:
		return err
	default:
		return errHangs
	}
}
