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
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
)

// groupState is what recovery must know about one group. A nil one belongs to a
// group without a tracker.
type groupState struct {
	recovery *recovery

	mu   sync.Mutex // guards the fields below
	dirs []notedDir
	gone bool
}

// notedDir is a directory that has a record in the journal.
type notedDir struct{ kind, path string }

// MakeDir makes a directory, after noting it.
func (b *groupState) MakeDir() (string, error) {
	if b == nil || b.recovery.options.StateDir == "" {
		return "", errors.New("make private directory: there is no state directory")
	}
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	dir := filepath.Join(b.recovery.options.StateDir, "s"+hex.EncodeToString(random[:]))
	if err := b.makeNoted(kindDirectory, dir); err != nil {
		return "", err
	}
	return dir, nil
}

// MakeDir makes a private directory in the state directory, after noting it in
// the journal. remove removes it; if this process dies first, the user's next
// sidecar does.
func (t *Tracker) MakeDir() (dir string, remove func() error, err error) {
	share := t.recovery.share()
	if dir, err = share.MakeDir(); err != nil {
		return "", nil, errors.Join(err, share.giveBack())
	}
	return dir, share.giveBack, nil
}

// makeNoted makes a directory that is removed with the group. It does not wait for
// a file system that does not answer.
func (b *groupState) makeNoted(kind, dir string) error {
	if err := fsguard.Answers(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("make private directory: %w", err)
	}
	if err := b.recovery.write(journal.NewRecord(kind, dir, nil)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if err != nil { // somebody may have removed the state directory
		b.recovery.warn()
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		_ = b.recovery.write(journal.Ended(kind, dir))
		return fmt.Errorf("make private directory: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirs = append(b.dirs, notedDir{kind, dir})
	return nil
}

// Guard makes sure that a watchdog runs.
func (b *groupState) Guard() error {
	if b == nil {
		return nil
	}
	return b.recovery.guard()
}

// note writes a record of the group to the journal.
func (b *groupState) note(r journal.Record) error {
	if b == nil {
		return nil
	}
	return b.recovery.write(r)
}

// warned adds to a tracking what is lost if the journal cannot be written.
func (b *groupState) warned(t Tracking) Tracking {
	if b != nil {
		t.Warning = b.recovery.warn()
	}
	return t
}

// giveBack removes the directories, once. If that takes long, it continues in
// the background.
func (b *groupState) giveBack() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return nil
	}
	b.gone = true
	b.recovery.forget(b)
	done := b.recovery.remove(b.dirs)
	timer := time.NewTimer(removeAtOnce)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return nil
}
