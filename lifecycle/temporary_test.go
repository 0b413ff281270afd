//go:build unix

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
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

// What dead sidecars have left is removed without their journal. What others
// hold, what has another name and what symlinks lead to stays.
func TestTemporaryDir_RemovesWhatDeadSidecarsHaveLeft(t *testing.T) {
	t.Parallel()
	parent, elsewhere := proctest.StateDir(t), proctest.StateDir(t)
	name := func(digit string) string { return filepath.Join(parent, temporaryPrefix+strings.Repeat(digit, 16)) }
	dead, held, link := name("1"), name("2"), name("3")
	others := []string{
		held, parent + "/other", parent + "/sandbox-sidecar-notes", name("4") + "5", name("g"), elsewhere + "/kept",
	}
	for _, dir := range append(others, dead) {
		if err := os.MkdirAll(filepath.Join(dir, "files", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	lock, err := lockTemporary(held)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	tracker := Open(Options{StateDir: proctest.StateDir(t)})
	if _, err := tracker.TemporaryDir("/project", parent); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the dead sidecar's directory is removed", func() bool { return !proctest.Exist(dead) })
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range others {
		if !proctest.Exist(filepath.Join(dir, "files", "deep")) {
			t.Errorf("%s is removed", dir)
		}
	}
}

// Between its making and its lock, another sidecar may take a directory for a
// dead one's.
func TestTemporaryDir_IsMadeWhileOthersSweep(t *testing.T) {
	t.Parallel()
	parent := proctest.StateDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for ctx.Err() == nil {
			_ = sweepTemporary(ctx, parent)
		}
	})
	tracker := Open(Options{StateDir: proctest.StateDir(t)})
	for i := range 200 {
		dir, err := tracker.TemporaryDir(strconv.Itoa(i), parent)
		if err != nil {
			t.Error(err)
		} else if !proctest.Exist(dir) {
			t.Errorf("%s is removed while its sidecar lives", dir)
		}
	}
	cancel()
	sweeper.Wait()
	if err := tracker.Close(); err != nil {
		t.Error(err)
	}
}
