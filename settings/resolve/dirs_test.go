package resolve

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// What is remembered agrees with the directory after every change, also if the
// kernel's clock has not moved meanwhile.
func TestRememberDirs_AgreesWithTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	remember := RememberDirs()
	for i, name := range []string{"a", "b", ".git", "c"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := remember(dir)
			want, _ := dirs(dir)
			if err != nil || !slices.Equal(got, want) || len(got) != i+1 {
				t.Errorf("%q, want %q: %v", got, want, err)
			}
		}
	}
}

func TestRememberDirs_DoesNotReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	remembered := remember(func(textfile.Signature) bool { return false }, dirs)
	first, err := remembered(dir)
	again, _ := remembered(dir)
	if err != nil || len(first) != 1 || len(again) != 1 || &first[0] != &again[0] {
		t.Errorf("%q, then %q: %v", first, again, err)
	}
}

// A list of a crowded directory says that it is not whole, also from memory.
func TestDirs_SaysThatMoreAreThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	remembered := remember(func(textfile.Signature) bool { return false }, dirs)
	for i := range MaxNames {
		if err := os.Symlink("x", filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		if i == MaxNames-2 {
			if _, err := dirs(dir); err != nil {
				t.Errorf("below the bound: %v", err)
			}
		}
	}
	for range 2 {
		if _, err := remembered(dir); !errors.Is(err, ErrNotAllFound) {
			t.Errorf("at the bound: %v", err)
		}
	}
}
