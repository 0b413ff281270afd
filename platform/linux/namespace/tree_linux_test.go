package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A proof must fail if the copy is not where it belongs.
func TestGrant_ProofFailsIfNothingIsMounted(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	if err := (grant{path: dir, clone: proc}).prove(); !errors.Is(err, errNotThere) {
		t.Errorf("a path on another mount: %v", err)
	}
	if err := (grant{path: dir + "/gone", clone: proc}).prove(); err != nil {
		t.Errorf("a path that is gone: %v", err)
	}
	if err := (grant{path: "/proc", clone: proc}).prove(); err != nil {
		t.Errorf("the very mount: %v", err)
	}
}

// What a session cannot reach, and what needs no mount, is left out.
func TestTree_ClonesOnlyFilesAndDirectories(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(dir, dir+"/link"), unix.Mkfifo(dir+"/fifo", 0o600)); err != nil {
		t.Fatal(err)
	}
	tree := Tree{Writable: []string{"/dev/null", dir + "/fifo", dir + "/gone", dir + "/link", dir + "/link/x"}}
	if grants, err := tree.clone(); err != nil || len(grants) > 0 {
		t.Errorf("%v, %+v", err, grants)
	}
}
