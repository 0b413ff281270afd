//go:build unix

package lifecycle

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// estate is what a tracker leaves to others when it dies: its journal, and the watchdog that reads it. Without a state directory there
// is none, and every method does nothing.
type estate struct {
	options Options

	mu       sync.Mutex // guards the fields below
	journal  *journal   // made with the first record or group
	watchdog *watchdog  // made with the first group; nil without Options.Watchdog
	closed   bool
}

// open makes the watchdog on first use, and the journal that it is to carry out.
func (e *estate) open() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.openJournal(); err != nil || e.journal == nil {
		return err
	}
	if e.watchdog == nil && e.options.Watchdog != nil {
		e.watchdog = &watchdog{command: e.options.Watchdog, journal: e.journal.path, log: e.options.logger()}
	}
	if e.watchdog != nil {
		return e.watchdog.use()
	}
	return nil
}

// openJournal makes the journal on first use. The lock is held.
func (e *estate) openJournal() (err error) {
	switch {
	case e.closed:
		return fmt.Errorf("track processes: %w", os.ErrClosed)
	case e.options.StateDir == "" || e.journal != nil:
		return nil
	}
	e.journal, err = newJournal(e.options.StateDir)
	return err
}

// release is called as often as open succeeded.
func (e *estate) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchdog != nil {
		e.watchdog.release()
	}
}

// write notes something before it comes to be.
func (e *estate) write(r record) error {
	e.mu.Lock()
	var err error
	if !e.closed { // afterwards nothing comes to be any more
		err = e.openJournal()
	}
	j := e.journal
	e.mu.Unlock()
	if err != nil || j == nil {
		return err
	}
	return j.write(r)
}

// close ends the watchdog and removes the journal. Nothing may be left that they are for.
func (e *estate) close() error {
	e.mu.Lock()
	e.closed = true
	j, w := e.journal, e.watchdog
	e.journal = nil
	e.mu.Unlock()
	if w != nil {
		w.close()
	}
	if j == nil {
		return nil
	}
	return j.close()
}

// belongings are one group's share of the estate. A nil one is that of a group outside any tracker, which has none.
type belongings struct {
	estate *estate

	mu   sync.Mutex // guards the fields below
	dirs []string
	gone bool
}

// MakeDir makes a directory after it was written down.
func (b *belongings) MakeDir() (string, error) {
	if b == nil || b.estate.options.StateDir == "" {
		return "", errors.New("make private directory: there is no state directory")
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	dir := filepath.Join(b.estate.options.StateDir, "s"+hex.EncodeToString(random[:]))
	if err := b.estate.write(record{Remove: dir}); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("make private directory: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs = append(b.dirs, dir)
	return dir, nil
}

// note writes something of the group's down.
func (b *belongings) note(r record) error {
	if b == nil {
		return nil
	}
	return b.estate.write(r)
}

// giveBack removes the directories, once.
func (b *belongings) giveBack() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return nil
	}
	b.gone = true
	var failures []error
	for _, dir := range b.dirs {
		failures = append(failures, removeTree(dir))
	}
	b.estate.release()
	return errors.Join(failures...)
}
