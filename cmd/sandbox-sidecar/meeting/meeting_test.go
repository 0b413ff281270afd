//go:build unix

package meeting

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seven is the owner of most places here.
var seven = Owner{Namespace: 4, PID: 7, Birth: 99}

func TestPlace(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "places")
	place := At(dir, seven, "key")
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
	if text, err := At(dir, seven, "key").Read(); text != "second" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for name, other := range map[string]Place{
		"key": At(dir, seven, "other"), "process": At(dir, Owner{4, 8, 99}, "key"),
		"start time": At(dir, Owner{4, 7, 98}, "key"), "namespace": At(dir, Owner{5, 7, 99}, "key"),
	} {
		if text, err := other.Read(); text != "" || err != nil {
			t.Errorf("another %s has %q, %v", name, text, err)
		}
	}
	if err := place.Write(strings.Repeat("x", mostText+1)); err == nil {
		t.Error("a text was written that nobody can read")
	}
	if err := place.End("second", "ended"); err != nil {
		t.Error(err)
	}
	if text, _ := place.Read(); text != "second" {
		t.Errorf("it was replaced while another process has the lock: %q", text)
	}
	lock.Close()
	if err := place.End("first", "ended"); err != nil {
		t.Error(err)
	}
	if text, _ := place.Read(); text != "second" {
		t.Errorf("the text of another was replaced: %q", text)
	}
	if err := place.End("second", "ended"); err != nil {
		t.Error(err)
	}
	if text, err := place.Read(); text != "ended" || err != nil {
		t.Errorf("left: %q, %v", text, err)
	}
}

// What an owner's places hold is found by each of them, and removed at once. What
// another owner has left is neither.
func TestPlace_OfOneOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two, other := At(dir, seven, "one"), At(dir, seven, "two"), At(dir, Owner{4, 77, 99}, "one")
	lock, err := one.Lock("", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if err := errors.Join(one.Write("a"), two.Write("b"), other.Write("c"), one.Fail("why")); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := errors.Join(os.Chtimes(one.path(), long, long), os.Chtimes(two.path(), long, long)); err != nil {
		t.Fatal(err)
	}
	two.Touch()
	left := two.Left()
	slices.SortFunc(left, func(a, b Left) int { return a.Used.Compare(b.Used) })
	if len(left) != 2 || left[0].Text != "a" || left[1].Text != "b" || time.Since(left[0].Used) < time.Hour ||
		time.Since(left[1].Used) > time.Hour/2 {
		t.Errorf("left: %+v", left)
	}
	one.Forget()
	entries, err := os.ReadDir(dir)
	if text, _ := other.Read(); err != nil || len(entries) != 1 || text != "c" {
		t.Errorf("left: %v, %v, and %q of another", entries, err, text)
	}
	if err := one.End("a", "ended"); err != nil {
		t.Error(err)
	}
	if text, err := one.Read(); text != "" || err != nil {
		t.Errorf("left after its owner: %q, %v", text, err)
	}
}

// A failure is recent for a while, and known until a start succeeds.
func TestPlace_Failed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "places")
	place := At(dir, seven, "key")
	if why, recent := place.Failed(time.Hour); why != "" || recent {
		t.Errorf("%q, %v before any", why, recent)
	}
	if err := place.Fail("too bad"); err != nil {
		t.Fatal(err)
	}
	if why, recent := place.Failed(time.Hour); why != "too bad" || !recent {
		t.Errorf("%q, %v", why, recent)
	}
	if why, recent := At(dir, seven, "other").Failed(time.Hour); why != "" || recent {
		t.Errorf("%q, %v at another place", why, recent)
	}
	for name, at := range map[string]time.Time{
		"long ago": time.Now().Add(-2 * time.Hour), "in the future": time.Now().Add(2 * time.Hour),
	} {
		if err := os.Chtimes(place.path()+failed, at, at); err != nil {
			t.Fatal(err)
		}
		if why, recent := place.Failed(time.Hour); why != "too bad" || recent {
			t.Errorf("%s: %q, %v", name, why, recent)
		}
	}
	place.Succeed()
	if why, _ := place.Failed(time.Hour); why != "" {
		t.Errorf("%q after a success", why)
	}
}

func TestPlace_FollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := At(dir, seven, "key")
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, []byte("text"), 0o600), os.Symlink(target, place.path())); err != nil {
		t.Fatal(err)
	}
	if text, err := place.Read(); err == nil {
		t.Errorf("%q was read through a link", text)
	}
	// Names that a file to be renamed may have.
	for _, end := range []string{".new", failed} {
		if err := os.Symlink(target, place.path()+end); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(place.Write("other"), place.Fail("why")); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); string(text) != "text" || err != nil {
		t.Errorf("%q, %v was written through a link", text, err)
	}
	if text, err := place.Read(); text != "other" || err != nil {
		t.Errorf("control: %q, %v", text, err)
	}
}

// One of many has the place at a time.
func TestLock_IsOne(t *testing.T) {
	t.Parallel()
	place := At(t.TempDir(), seven, "key")
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
	place := At(t.TempDir(), seven, "key")
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
	alive, dead := At(dir, seven, "key"), At(dir, Owner{4, 7, 98}, "key")
	foreign, old := At(dir, Owner{5, 7, 98}, "key"), At(dir, Owner{5, 7, 97}, "key")
	other := filepath.Join(dir, "other")
	err := errors.Join(alive.Write("a"), dead.Write("b"), foreign.Write("c"), old.Write("d"),
		os.WriteFile(other, nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-foreignAge - time.Hour)
	if err := os.Chtimes(old.path(), long, long); err != nil {
		t.Fatal(err)
	}
	alive.Tidy(func(pid int, birth uint64) bool { return pid == 7 && birth == 99 })
	for place, want := range map[Place]string{alive: "a", dead: "", foreign: "c", old: ""} {
		if text, err := place.Read(); text != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", place.Name(), text, err, want)
		}
	}
	if _, err := os.Lstat(other); err != nil {
		t.Error(err)
	}
}

// A file that is empty, as after a crash of the machine, is one that is not there.
func TestPlace_AnEmptyFileIsNone(t *testing.T) {
	t.Parallel()
	place := At(t.TempDir(), seven, "key")
	for _, path := range []string{place.path(), place.path() + failed} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := place.Read(); text != "" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if why, recent := place.Failed(time.Hour); why != "" || recent {
		t.Errorf("it has failed: %q, %v", why, recent)
	}
	if lock, err := place.Lock("", time.Minute); lock == nil || err != nil {
		t.Errorf("it cannot be locked: %v", err)
	} else {
		lock.Close()
	}
}

// Once a text is replaced at its end, no lock is left. A process that still waits
// for that lock gets the next one, and has the place alone.
func TestEnd_LeavesNoLock(t *testing.T) {
	t.Parallel()
	place := At(t.TempDir(), seven, "key")
	lock, err := place.Lock("", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := place.Write("text"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(place.path() + locked); err != nil {
		t.Errorf("control: %v", err)
	}
	waiting, err := os.OpenFile(place.path()+locked, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	lock.Close()
	if err := place.End("text", "ended"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(place.path() + locked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock is left: %v", err)
	}
	if isAt(waiting, place.path()+locked) {
		t.Error("the lock that was removed counts")
	}
	lock, err = place.Lock("ended", time.Minute)
	if err != nil || lock == nil {
		t.Fatalf("%v, %v", lock, err)
	}
	defer lock.Close()
	if !isAt(lock, place.path()+locked) {
		t.Error("it has a lock that is not there")
	}
	if name, is := LockedPlace(lock.Name()); !is || name != place.Name() {
		t.Errorf("the lock is of %q, %v", name, is)
	}
	if _, is := LockedPlace(place.path()); is {
		t.Error("a text counts as a lock")
	}
}

// Of what is over the newest texts stay. What is not over stays, and so does what is
// another owner's.
func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := At(dir, Owner{4, 8, 99}, "key")
	live := At(dir, seven, "live")
	if err := errors.Join(other.Write("over"), live.Write("live")); err != nil {
		t.Fatal(err)
	}
	var places []Place
	for i, key := range []string{"a", "b", "c", "d"} {
		place := At(dir, seven, key)
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := errors.Join(place.Write("over"), place.Fail("why"), os.Chtimes(place.path(), at, at)); err != nil {
			t.Fatal(err)
		}
		places = append(places, place)
	}
	live.Prune(2, func(text string) bool { return text == "over" })
	for i, place := range places {
		text, err := place.Read()
		why, _ := place.Failed(time.Hour)
		if gone := i < 2; err != nil || (text == "") != gone || (why == "") != gone {
			t.Errorf("place %d: %q, %q, %v", i, text, why, err)
		}
	}
	for name, place := range map[string]Place{"another owner's": other, "one that is not over": live} {
		if text, _ := place.Read(); text == "" {
			t.Errorf("%s was removed", name)
		}
	}
	if locks, _ := filepath.Glob(filepath.Join(dir, "*"+locked)); len(locks) > 0 {
		t.Errorf("locks are left: %q", locks)
	}
}

// Only files that are ours by their whole name are tidied up.
func TestTidy_RemovesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place := At(dir, seven, "key")
	dead := At(dir, Owner{4, 6, 98}, "key").Name()
	ours := []string{dead, dead + locked, dead + failed, dead + ".123", dead + failed + ".123"}
	others := []string{
		"10.0.0.1.conf", "2024.01.05.log", "4.6.98.", "4.6.98.key", dead + ".log", dead + "0", "x" + dead,
		dead[:len(dead)-1], dead + failed + locked,
	}
	for _, name := range append(slices.Clone(ours), others...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := At(dir, Owner{4, 5, 97}, "key").path()
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	place.Tidy(func(int, uint64) bool { return false })
	for _, name := range ours {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("control: %s is left", name)
		}
	}
	for _, name := range append(others, filepath.Base(link)) {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s was removed", name)
		}
	}
}
