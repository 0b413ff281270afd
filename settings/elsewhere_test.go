package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A home that is another user's and closed has no settings of this user. One
// that the user has closed has, and they are in doubt.
func TestOwnHome(t *testing.T) {
	t.Parallel()
	mine := t.TempDir()
	if err := os.Chmod(mine, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(mine, 0o700) })
	missing := filepath.Join(t.TempDir(), "missing")
	const root = "/root"
	_, err := os.Lstat(filepath.Join(root, ".config"))
	for home, want := range map[string]string{mine: mine, missing: missing, "/": "/", root: root} {
		if home == root && errors.Is(err, fs.ErrPermission) {
			want = ""
		}
		if got := ownHome(home); got != want {
			t.Errorf("%s: %q, want %q", home, got, want)
		}
	}
}
