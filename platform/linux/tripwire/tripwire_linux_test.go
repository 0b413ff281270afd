package tripwire

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// watched is a directory with a tripwire for some names in it.
type watched struct {
	t    *testing.T
	dir  string
	wire *Tripwire

	mu       sync.Mutex // guards reported
	reported []string
}

func watch(t *testing.T, mounted bool, prepare func(w *watched), names ...string) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir()}
	prepare(w)
	var paths []string
	for _, name := range names {
		paths = append(paths, w.path(name))
	}
	wire, err := New(Options{Paths: paths, Mounted: mounted, Refusals: mounted, Report: func(kind Kind, path string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.reported = append(w.reported, fmt.Sprint([]string{"created", "replaced", "written", "refused"}[kind], " ",
			strings.TrimPrefix(path, w.dir+"/")))
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.wire = wire
	t.Cleanup(wire.Close)
	return w
}

func (w *watched) path(name string) string { return filepath.Join(w.dir, name) }

func (w *watched) make(name string) {
	w.t.Helper()
	w.must(os.MkdirAll(w.path(name), 0o700))
}

func (w *watched) write(name, text string) {
	w.t.Helper()
	w.must(os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	w.must(os.WriteFile(w.path(name), []byte(text), 0o600))
}

func (w *watched) rename(from, to string) {
	w.t.Helper()
	w.must(os.Rename(w.path(from), w.path(to)))
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// expect waits until exactly these events were reported.
func (w *watched) expect(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	var got []string
	deadline.Until(20*time.Second, func() bool {
		w.mu.Lock()
		got = slices.Clone(w.reported)
		w.mu.Unlock()
		slices.Sort(got)
		return len(got) > len(want) || slices.Equal(got, want)
	})
	if !slices.Equal(got, want) {
		w.t.Fatalf("reported %q, want %q", got, want)
	}
}

func TestTripwire_ReportsCreation(t *testing.T) {
	t.Parallel()
	w := watch(t, true, func(w *watched) { w.make("a") }, "file", "a/link", "b/c/d", "dir")
	w.write("other", "")
	w.write("file", "")
	w.expect("created file")
	w.must(os.Symlink("x", w.path("a/link")))
	w.make("dir")
	w.expect("created file", "created a/link", "created dir")
	w.make("b")
	w.make("b/c")
	w.write("b/c/d", "")
	w.write("b/c/d", "again")
	w.expect("created file", "created a/link", "created dir", "created b/c/d")
}

func TestTripwire_ReportsCreationByRenaming(t *testing.T) {
	t.Parallel()
	w := watch(t, true, func(w *watched) { w.write("x/hooks/h", ""); w.write("y", "") }, ".git/hooks", "f")
	w.rename("x", ".git")
	w.rename("y", "f")
	w.expect("created .git/hooks", "created f")
}

func TestTripwire_ReportsReplacement(t *testing.T) {
	t.Parallel()
	for _, mounted := range []bool{true, false} {
		w := watch(t, mounted, func(w *watched) {
			w.write(".git/config", "")
			w.write(".git/hooks/h", "")
			w.make("moved")
		}, ".git/config", ".git/hooks", "moved/x")
		w.write(".git/new", "")
		w.rename(".git/new", ".git/config")
		w.expect("replaced .git/config")
		w.rename(".git", ".g")
		w.expect("replaced .git/config", "replaced .git/hooks")
	}
}

func TestTripwire_ReportsWritesIfNothingIsMounted(t *testing.T) {
	t.Parallel()
	prepare := func(w *watched) { w.write(".git/config", ""); w.write(".git/hooks/h", "") }
	change := func(w *watched) {
		w.write(".git/config", "more")
		w.write(".git/hooks/new", "")
		w.write(".git/last", "")
	}
	w := watch(t, false, prepare, ".git/config", ".git/hooks", ".git/last")
	change(w)
	w.expect("written .git/config", "written .git/hooks", "created .git/last")
	w = watch(t, true, prepare, ".git/config", ".git/hooks", ".git/last")
	change(w)
	w.expect("created .git/last")
}

func TestTripwire_ReportsFailedChangesOfGit(t *testing.T) {
	t.Parallel()
	w := watch(t, true, func(w *watched) { w.write(".git/config", "") }, ".git/config", "missing")
	w.write("missing.lock", "")
	w.must(os.Remove(w.path("missing.lock")))
	w.write(".git/config.lock", "")
	w.must(os.Remove(w.path(".git/config.lock")))
	w.expect("refused .git/config")
}

func TestTripwire_ChecksPathsWhenItCloses(t *testing.T) {
	t.Parallel()
	w := watch(t, true, func(*watched) {}, "file")
	shared.remove(w.wire) // as if the user had no watches left
	w.write("file", "")
	w.wire.Close()
	w.expect("created file")
	w.write("dir/file", "")
	w.wire.Close()
	w.expect("created file")
}

func TestTripwire_ManyShareOneInstance(t *testing.T) {
	t.Parallel()
	var all []*watched
	for range 200 { // more than fs.inotify.max_user_instances usually allows
		all = append(all, watch(t, true, func(*watched) {}, "file"))
	}
	for _, w := range all {
		w.write("file", "")
	}
	for _, w := range all {
		w.expect("created file")
	}
}

func TestTripwire_TwoCanWatchOneDirectory(t *testing.T) {
	t.Parallel()
	first := watch(t, true, func(w *watched) { w.write("file", "") }, "file", "new")
	var told []string
	second, err := New(Options{Paths: []string{first.path("new")}, Mounted: true, Report: func(_ Kind, path string) {
		told = append(told, path)
	}})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	first.write("new", "")
	first.expect("created new")
	if len(told) > 0 {
		t.Errorf("a closed tripwire reported %q", told)
	}
}

func TestTripwire_AcceptsImpossiblePaths(t *testing.T) {
	t.Parallel()
	w := watch(t, false, func(w *watched) {
		w.write(".git", "gitdir: x")
		w.must(os.Symlink(".git", w.path("link")))
	}, ".git/hooks", "link/x", ".git")
	w.write(".git", "gitdir: y")
	w.expect("written .git")
}

// A directory that is moved away and back just before the end leaves no trace
// but its events.
func TestTripwire_ReportsChangesJustBeforeItCloses(t *testing.T) {
	t.Parallel()
	for range 200 {
		w := watch(t, false, func(w *watched) { w.write("protected/file", "") }, "protected/file")
		w.rename("protected", "away")
		w.rename("away", "protected")
		w.wire.Close()
		w.mu.Lock()
		told := slices.Clone(w.reported)
		w.mu.Unlock()
		if !slices.Contains(told, "replaced protected/file") {
			t.Fatalf("reported %q", told)
		}
	}
}
