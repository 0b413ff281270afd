package resolve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A session sets the times of a file back, and makes none that is older.
func TestOldest_GoesByTheInode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name, "gitdir") }
	changed := func(name string) time.Time {
		info, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return changedAt(info)
	}
	for _, name := range []string{"older", "decoy"} {
		err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.WriteFile(at(name), nil, 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil { // without the file
		t.Fatal(err)
	}
	for !changed("decoy").After(changed("older")) { // the clock of files ticks slowly
		if err := os.Chtimes(at("decoy"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	names, err := OS.Oldest(dir, "gitdir", 3)
	if !slices.Equal(names, []string{"older", "decoy", "a"}) || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	names, err = OS.Oldest(dir, "gitdir", 1)
	if !slices.Equal(names, []string{"older"}) || !errors.Is(err, ErrNotAllFound) {
		t.Errorf("of three one: %q, %v", names, err)
	}
}

// A list that stops leaves out any name, also the oldest. So nothing is listed.
func TestOldest_ComparesAllOrNone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range MaxNames + 1 {
		if err := os.Symlink("x", filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	for most, want := range map[int]error{0: ErrNotAllFound, 1: ErrTooManyNames} {
		if names, err := OS.Oldest(dir, "gitdir", most); len(names) > 0 || !errors.Is(err, want) {
			t.Errorf("%d of too many: %q, %v", most, names, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	if names, err := OS.Oldest(dir, "gitdir", 1); len(names) != 1 || !errors.Is(err, ErrNotAllFound) {
		t.Errorf("at the bound: %q, %v", names, err)
	}
}
