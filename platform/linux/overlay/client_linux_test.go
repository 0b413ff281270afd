package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that has the startLock and does not go on, as one that somebody has
// stopped, holds up one session for some seconds, and not each. Once the lock is
// free, it is taken.
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
	took := func() time.Duration {
		begun := time.Now()
		if _, err := client.Prepare(nil, false); !errors.Is(err, errHeld) {
			t.Errorf("while it is kept: %v", err)
		}
		return time.Since(begun)
	}
	if first, second := took(), took(); second > first/2 {
		t.Errorf("the first session waited %s, and the second %s", first, second)
	}
	kept.Close()
	if _, err := client.Prepare(nil, false); !errors.Is(err, started) {
		t.Errorf("once it is free: %v", err)
	}
}

// A holder that does not answer, as one that somebody has stopped, delays one
// session, and not each.
func TestPrepare_AsksASilentHolderOnce(t *testing.T) {
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
	silent, err := listen(opened) // the kernel connects, and nothing answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client := &Client{Dir: dir, Start: func(*os.ProcAttr) error { return errors.New("another holder is started") }}
	took := func() time.Duration {
		begun := time.Now()
		if _, err := client.Prepare(nil, false); !errors.Is(err, errSilent) {
			t.Errorf("prepared: %v", err)
		}
		return time.Since(begun)
	}
	if first, second := took(), took(); second > first/2 {
		t.Errorf("the first session waited %s, and the second %s", first, second)
	}
}
