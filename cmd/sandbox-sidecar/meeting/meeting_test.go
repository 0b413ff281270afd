//go:build unix

package meeting

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "places")
	place := At(dir, 7, 99, "key")
	if text, err := place.Read(); text != "" || err != nil {
		t.Errorf("an empty place has %q, %v", text, err)
	}
	lock, err := place.Lock("", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(place.Write("first"), place.Write("second")); err != nil {
		t.Fatal(err)
	}
	if text, err := At(dir, 7, 99, "key").Read(); text != "second" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for name, other := range map[string]Place{
		"key": At(dir, 7, 99, "other"), "process": At(dir, 8, 99, "key"), "start time": At(dir, 7, 98, "key"),
	} {
		if text, err := other.Read(); text != "" || err != nil {
			t.Errorf("another %s has %q, %v", name, text, err)
		}
	}
	if err := place.Write(strings.Repeat("x", mostText+1)); err == nil {
		t.Error("a text was written that nobody can read")
	}
	lock.Close()
	if err := place.End("first"); err != nil {
		t.Error(err)
	}
	if text, _ := place.Read(); text != "second" {
		t.Errorf("the text of another was removed: %q", text)
	}
	if err := place.End("second"); err != nil {
		t.Error(err)
	}
	if text, err := place.Read(); text != "" || err != nil {
		t.Errorf("left: %q, %v", text, err)
	}
}

func TestPlace_FollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := At(dir, 7, 99, "key")
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, []byte("text"), 0o600), os.Symlink(target, place.path())); err != nil {
		t.Fatal(err)
	}
	if text, err := place.Read(); err == nil {
		t.Errorf("%q was read through a link", text)
	}
}

// One of many has the place at a time.
func TestLock_IsOne(t *testing.T) {
	t.Parallel()
	place := At(t.TempDir(), 7, 99, "key")
	var inside atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 20 {
				lock, err := place.Lock("", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two have it at a time")
				}
				inside.Add(-1)
				lock.Close()
			}
		})
	}
	workers.Wait()
}

// A process that waits for the lock is released by what the other leaves there, and
// by nothing else.
func TestLock_WaitsForTheLockOrTheText(t *testing.T) {
	t.Parallel()
	place := At(t.TempDir(), 7, 99, "key")
	lock, err := place.Lock("", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := place.Lock("", 10*time.Millisecond); !errors.Is(err, ErrLocked) {
		t.Errorf("it was locked twice: %v", err)
	}
	if err := place.Write("text"); err != nil {
		t.Fatal(err)
	}
	if other, err := place.Lock("", time.Minute); other != nil || err != nil {
		t.Errorf("%v, %v", other, err)
	}
	if _, err := place.Lock("text", 10*time.Millisecond); !errors.Is(err, ErrLocked) {
		t.Errorf("it was locked twice: %v", err)
	}
}

func TestTidy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	alive, dead := At(dir, 7, 99, "key"), At(dir, 7, 98, "key")
	other := filepath.Join(dir, "other")
	err := errors.Join(alive.Write("a"), dead.Write("b"), os.WriteFile(other, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	alive.Tidy(func(pid int, birth uint64) bool { return pid == 7 && birth == 99 })
	left, _ := dead.Read()
	kept, _ := alive.Read()
	if _, err := os.Lstat(other); left != "" || kept != "a" || err != nil {
		t.Errorf("left %q, kept %q, %v", left, kept, err)
	}
}
