package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) { //nolint:forbidigo // it is not wrapped
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// A green run in a fresh clone is known in the checkout that it was cloned from.
func TestPassed_WritesTheStamp(t *testing.T) {
	t.Parallel()
	checkout := repository(t)
	clone := t.TempDir()
	gitIn(t, clone, "clone", "-q", checkout, "there")
	clone = filepath.Join(clone, "there")
	tree := gitIn(t, clone, "rev-parse", "HEAD^{tree}")
	stamps := []string{filepath.Join(checkout, ".git", stampFile), filepath.Join(clone, ".git", stampFile)}
	mustBe := func(what, want string) {
		t.Helper()
		for _, stamp := range stamps {
			if got := read(t, stamp); got != want {
				t.Errorf("%s: %s has %q, want %q", what, stamp, got, want)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(clone, "new"), nil, 0o644))
	must(passed(t.Context(), clone, tree, true))
	mustBe("a checkout with changes", "")
	must(os.Remove(filepath.Join(clone, "new")))
	gitIn(t, clone, "update-index", "--assume-unchanged", "a")
	must(passed(t.Context(), clone, tree, true))
	mustBe("a file that git does not look at", "")
	gitIn(t, clone, "update-index", "--no-assume-unchanged", "a")
	must(os.WriteFile(filepath.Join(clone, ".git/info/exclude"), []byte("b.go\n"), 0o644))
	must(os.WriteFile(filepath.Join(clone, "b.go"), nil, 0o644))
	must(passed(t.Context(), clone, tree, true))
	mustBe("a file that git ignores", "")
	must(os.Remove(filepath.Join(clone, "b.go")))
	must(passed(t.Context(), clone, "another", true))
	mustBe("another commit", "")
	must(passed(t.Context(), clone, tree, false))
	mustBe("a green run", tree)
	must(forget(t.Context(), clone))
	mustBe("a run that has begun", "")
	must(passed(t.Context(), clone, tree, false))
	for _, stamp := range stamps {
		must(os.WriteFile(stamp, []byte("another\n"), 0o644))
	}
	must(forget(t.Context(), clone))
	mustBe("a run of another tree", "another")
	must(passed(t.Context(), clone, tree, false))
	if got := read(t, filepath.Join(clone, passedFile)); got != "" {
		t.Errorf("not every part can run, and %s has %q", passedFile, got)
	}
	must(os.Mkdir(filepath.Join(clone, ".ci"), 0o755))
	must(passed(t.Context(), clone, tree, true))
	if got := read(t, filepath.Join(clone, passedFile)); got != gitIn(t, clone, "rev-parse", "HEAD") {
		t.Errorf("every part can run, and %s has %q", passedFile, got)
	}
	// A worktree has its common directory in the checkout.
	work := filepath.Join(t.TempDir(), "work")
	gitIn(t, checkout, "worktree", "add", "-q", work)
	dirs, err := gitDirs(t.Context(), work)
	if err != nil || len(dirs) != 1 || dirs[0] != filepath.Join(checkout, ".git") {
		t.Errorf("the git directories of a worktree: %q, %v", dirs, err)
	}
	gitIn(t, clone, "config", "remote.origin.url", "https://example.com/x.git")
	if dirs, err := gitDirs(t.Context(), clone); err != nil || len(dirs) != 1 {
		t.Errorf("the git directories of a clone from elsewhere: %q, %v", dirs, err)
	}
}

// A test may be flaky in one of twenty runs, wherever these ran.
func TestNote_TwoFlakesOfOneTestAreRed(t *testing.T) {
	t.Parallel()
	checkout := repository(t)
	parent := t.TempDir()
	flaky := []flake{{Part: "go", Test: "p TestA", Output: strings.Repeat("x", 2*mostNoted)}}
	run := func(flakes []flake) string {
		t.Helper()
		// Each in a fresh clone.
		clone := filepath.Join(parent, "clone")
		gitIn(t, parent, "clone", "-q", checkout, clone)
		defer os.RemoveAll(clone)
		red, err := note(t.Context(), &bytes.Buffer{}, clone, flakes)
		if err != nil {
			t.Fatal(err)
		}
		return red
	}
	if red := run(flaky); red != "" {
		t.Errorf("the first flake: %s", red)
	}
	if red := run([]flake{{Part: "go", Test: "p TestB"}}); red != "" {
		t.Errorf("the flake of another test: %s", red)
	}
	if red := run(flaky); !strings.Contains(red, "p TestA was flaky in the run of ") {
		t.Errorf("the second flake: %q", red)
	}
	for range fewRuns - 1 {
		if red := run(nil); red != "" {
			t.Errorf("no flake: %s", red)
		}
	}
	if red := run(flaky); red != "" {
		t.Errorf("a flake after %d runs: %s", fewRuns, red)
	}
	file := filepath.Join(checkout, ".git", flakyFile)
	if size := len(read(t, file)); size > 4*mostNoted {
		t.Errorf("the history has %d bytes", size)
	}
	if err := appendLine(file, []byte("{torn")); err != nil {
		t.Fatal(err)
	}
	_, err := readHistory([]string{filepath.Join(checkout, ".git")})
	if err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a line that cannot be read: %v", err)
	}
}

func TestReadHistory_CountsARunOnce(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	for _, dir := range dirs {
		if err := appendLine(filepath.Join(dir, flakyFile), []byte(`{"time":"2026-01-02T03:04:05Z"}`)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := readHistory(dirs)
	if err != nil || len(all) != 1 || !all[0].Time.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("%+v, %v", all, err)
	}
}
