//go:build unix

package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMakeDir_GoesWithItsGroup(t *testing.T) {
	t.Parallel()
	dir := proctest.StateDir(t)
	tracker := Open(Options{StateDir: dir})
	group, err := tracker.NewGroup("one")
	if err != nil {
		t.Fatal(err)
	}
	private, err := group.MakeDir()
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(private)
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(private) != dir {
		t.Fatalf("%s: %v, %v", private, info, err)
	}
	journals, _ := filepath.Glob(filepath.Join(dir, "*"+journal.Suffix))
	if len(journals) != 1 {
		t.Fatalf("journals: %v", journals)
	}
	if text, _ := os.ReadFile(journals[0]); !strings.Contains(string(text), private) {
		t.Errorf("the journal does not list the directory:\n%s", text)
	}
	for range 2 {
		if err := group.Close(); err != nil {
			t.Fatal(err)
		}
	}
	// On a busy machine it goes in the background.
	harness.MustEnd(t, "the directory is gone", func() bool { return !proctest.Exist(private) })
	if err := tracker.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left in the state directory: %v", left)
	}
	if _, err := tracker.NewGroup("two"); err == nil {
		t.Error("a closed tracker makes groups")
	}
}

func TestMakeDir_NeedsAStateDirectory(t *testing.T) {
	t.Parallel()
	tracker := Open(Options{})
	defer tracker.Close()
	group, err := tracker.NewGroup("one")
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	if dir, err := group.MakeDir(); err == nil {
		t.Errorf("made %s", dir)
	}
}
