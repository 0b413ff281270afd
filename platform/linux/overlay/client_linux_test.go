package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that has the startLock and does not go on, as one that somebody has
// stopped, holds up no session for ever. Once the lock is free, it is taken.
func TestPrepare_DoesNotWaitForALockThatIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "overlays")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	opened, err := openMade(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	kept, err := openLock(opened, startLock)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if err := lock(kept, unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	started := errors.New("a holder is started")
	client := &Client{Dir: dir, Start: func(*os.ProcAttr) error { return started }}
	if _, err := client.Prepare(nil, false); !errors.Is(err, errHeld) {
		t.Errorf("while it is kept: %v", err)
	}
	kept.Close()
	if _, err := client.Prepare(nil, false); !errors.Is(err, started) {
		t.Errorf("once it is free: %v", err)
	}
}
