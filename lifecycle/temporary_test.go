//go:build unix

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func TestTemporaryDir_IsTheProjectsAndGoesWithTheTracker(t *testing.T) {
	t.Parallel()
	parent := proctest.StateDir(t)
	tracker := Open(Options{StateDir: proctest.StateDir(t)})
	get := func(project string) string {
		dir, err := tracker.TemporaryDir(project, parent)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	one := get("/one")
	if again := get("/one"); again != one {
		t.Errorf("a project has two directories: %s and %s", one, again)
	}
	if other := get("/two"); other == one {
		t.Error("two projects share a directory")
	}
	outer, err := os.Stat(filepath.Dir(one))
	if err != nil || outer.Mode().Perm() != 0o700 {
		t.Errorf("other users can enter it: %v, %v", outer, err)
	}
	inner, err := os.Stat(one)
	if err != nil || inner.Mode().Perm() != 0o777 || inner.Mode()&os.ModeSticky == 0 {
		t.Errorf("it is not as /tmp: %v, %v", inner, err)
	}
	if err := RemoveTree(t.Context(), filepath.Dir(one)); err != nil {
		t.Fatal(err)
	}
	again := get("/one")
	if !proctest.Exist(again) {
		t.Error("a directory that somebody has removed is not made again")
	}
	if err := os.MkdirAll(filepath.Join(again, "left/by/a/session"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// What the journal of a dead sidecar names is removed only if it is such a
// directory.
func TestRemoveTemporary_LeavesOthersAlone(t *testing.T) {
	t.Parallel()
	parent := proctest.StateDir(t)
	for _, name := range []string{"sandbox-sidecar-1", "sandbox-sidecar-2", "other"} {
		if err := os.MkdirAll(filepath.Join(parent, name, "files"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(parent+"/sandbox-sidecar-2", parent+"/sandbox-sidecar-3"); err != nil {
		t.Fatal(err)
	}
	var records []journal.Record
	for _, name := range []string{"sandbox-sidecar-1", "other", "other/../sandbox-sidecar-2", "sandbox-sidecar-3"} {
		records = append(records, journal.NewRecord(kindTemporary, parent+"/"+name, nil))
	}
	if _, err := removeTemporary(context.Background(), records, journal.Place{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"sandbox-sidecar-1": false, "sandbox-sidecar-2": true, "other": true} {
		if got := proctest.Exist(filepath.Join(parent, name)); got != want {
			t.Errorf("%s exists: %t", name, got)
		}
	}
}
