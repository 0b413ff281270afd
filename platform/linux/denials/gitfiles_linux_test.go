package denials

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory is moved into a repository if all of it was seen, and is plain.
func TestSearchTree(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", maxTreeDepth)
	for name, test := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"plain":  {func(dir string) error { return os.WriteFile(dir+"/file", nil, 0o600) }, ""},
		"a link": {func(dir string) error { return os.Symlink("x", dir+"/link") }, whyHolds},
		"a FIFO": {func(dir string) error { return unix.Mkfifo(dir+"/fifo", 0o600) }, whyHolds},
		"deep":   {func(dir string) error { return os.MkdirAll(dir+"/"+deep, 0o700) }, ""},
		"a link deep in it": {func(dir string) error {
			if err := os.MkdirAll(dir+"/"+deep, 0o700); err != nil {
				return err
			}
			return os.Symlink("x", dir+"/"+deep+"link")
		}, whyHolds},
		"too deep": {func(dir string) error { return os.MkdirAll(dir+"/"+deep+"d", 0o700) }, whyUnseen},
		"too many": {func(dir string) error {
			for i := range maxTreeEntries + 1 {
				if err := unix.Mknod(filepath.Join(dir, strconv.Itoa(i)), unix.S_IFREG|0o600, 0); err != nil {
					return err
				}
			}
			return nil
		}, whyUnseen},
		"gone": {os.Remove, whyUnseen},
	} {
		dir := filepath.Join(t.TempDir(), "moved")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		parent, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := test.make(dir); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := searchTree(&walk{fd: parent, name: "moved"}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		unix.Close(parent)
	}
}
