package resolve

import (
	"os"
	"path/filepath"
	"slices"
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
