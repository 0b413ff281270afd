package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The files below the git directory that a run writes. Where the checkout is a
// clone of a directory, they are written there too: what ran in a fresh clone is
// looked for in the checkout that it was cloned from.
const (
	stampFile = "ci-passed"  // the tree that passed, as git writes it
	flakyFile = "ci-flaky"   // a line of JSON for each run; see history
	timesFile = "ci-seconds" // the processor seconds of the last run; see timed
)

// history is what one run notes.
type history struct {
	Time  time.Time `json:"time"`
	Tree  string    `json:"tree"`
	Flaky []flake   `json:"flaky"`
}

// fewRuns is in how many runs a test may be flaky once.
const fewRuns = 20

// mostNoted is how much of a flaky test's output is noted, in bytes.
const mostNoted = 4096

// gitDirs are the git directories to which a run in a checkout writes: its own,
// and that of the directory that it was cloned from.
func gitDirs(ctx context.Context, checkout string) (dirs []string, err error) {
	own, err := git(ctx, checkout, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	dirs = append(dirs, strings.TrimSpace(own))
	origin, err := git(ctx, checkout, "config", "--get", "remote.origin.url")
	if err != nil {
		return dirs, nil // it is no clone
	}
	path := strings.TrimPrefix(strings.TrimSpace(origin), "file://")
	if !filepath.IsAbs(path) {
		path = filepath.Join(checkout, path)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return dirs, nil // it is elsewhere
	}
	from, err := git(ctx, path, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		fmt.Fprintf(os.Stderr, "note: nothing is written for the checkout that this was cloned from: %v\n", err)
		return dirs, nil
	}
	return append(dirs, strings.TrimSpace(from)), nil
}

// showFlakes prints the flaky tests of a run.
func showFlakes(out io.Writer, flakes []flake) {
	if len(flakes) == 0 {
		return
	}
	fmt.Fprintln(out, "\nflaky: these tests failed, and passed alone. Fix the test or the program, not the limit.")
	for _, f := range flakes {
		fmt.Fprintf(out, "\nflaky: %s: %s\n%s", f.Part, f.Test, f.Output)
	}
}

// note adds a run to the history of flaky tests. A test that was flaky in one of
// the runs before makes the run red; it returns why.
func note(ctx context.Context, out io.Writer, checkout string, flakes []flake) (red string, err error) {
	dirs, err := gitDirs(ctx, checkout)
	if err != nil {
		return "", err
	}
	before, err := readHistory(dirs)
	if err != nil {
		return "", err
	}
	tree, err := git(ctx, checkout, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return "", err
	}
	run := history{Time: time.Now().UTC(), Tree: strings.TrimSpace(tree)}
	for i, f := range flakes {
		if slices.ContainsFunc(flakes[:i], func(other flake) bool { return other.Test == f.Test }) {
			red = f.Test + " was flaky in two parts of this run"
		}
		if when := flakedBefore(before, f.Test); !when.IsZero() {
			red = fmt.Sprintf("%s was flaky in the run of %s too; a test may be flaky once in %d runs", f.Test,
				when.Format(time.DateTime), fewRuns)
		}
		f.Output = f.Output[max(0, len(f.Output)-mostNoted):] // what failed is at its end
		run.Flaky = append(run.Flaky, f)
	}
	line, err := json.Marshal(run)
	if err != nil {
		return "", err
	}
	return red, writeAll(out, dirs, flakyFile, func(path string) error { return appendLine(path, line) })
}

// flakedBefore is when a test was flaky in one of the last runs; zero if it was
// not.
func flakedBefore(before []history, name string) time.Time {
	for _, run := range before[max(0, len(before)-(fewRuns-1)):] {
		if slices.ContainsFunc(run.Flaky, func(f flake) bool { return f.Test == name }) {
			return run.Time
		}
	}
	return time.Time{}
}

// readHistory reads the runs that the files have, the oldest first, each once.
func readHistory(dirs []string) (all []history, err error) {
	for i, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, flakyFile))
		if errors.Is(err, fs.ErrNotExist) || err != nil && i > 0 { // that of the origin may be somebody else's
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			var run history
			if err := json.Unmarshal([]byte(line), &run); err != nil {
				return nil, fmt.Errorf("%s: %w: remove the line", filepath.Join(dir, flakyFile), err)
			}
			all = append(all, run)
		}
	}
	slices.SortFunc(all, func(a, b history) int { return a.Time.Compare(b.Time) })
	return slices.CompactFunc(all, func(a, b history) bool { return a.Time.Equal(b.Time) }), nil
}

func appendLine(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// writeAll writes a file of each git directory. That of the origin may belong to
// somebody else, so a failure there is only printed.
func writeAll(out io.Writer, dirs []string, name string, write func(path string) error) error {
	for i, dir := range dirs {
		err := write(filepath.Join(dir, name))
		switch {
		case err != nil && i == 0:
			return err
		case err != nil:
			fmt.Fprintf(out, "note: not written for the checkout that this was cloned from: %v\n", err)
		}
	}
	return nil
}

// forget removes the stamp of this commit's tree: it is judged anew.
func forget(ctx context.Context, checkout string) error {
	tree, err := git(ctx, checkout, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	dirs, err := gitDirs(ctx, checkout)
	if err != nil {
		return err
	}
	return writeAll(os.Stdout, dirs, stampFile, func(path string) error {
		if stamp, err := os.ReadFile(path); err != nil || string(stamp) != tree {
			return nil // there is none, or another
		}
		return os.Remove(path)
	})
}

// unusual is a line of "git ls-files -v" with a file that git does not look at.
var unusual = regexp.MustCompile(`(?m)^[^H] .*`)

// unseenFiles are files that can matter to a test although git says nothing about
// changes of theirs, one a line.
func unseenFiles(ctx context.Context, checkout string) (string, error) {
	flags, err := git(ctx, checkout, "ls-files", "-v")
	if err != nil {
		return "", err
	}
	ignored, err := git(ctx, checkout, "ls-files", "--others", "--ignored", "--exclude-standard", "--", "*.go", "*.s",
		":!*/node_modules/*")
	if err != nil {
		return "", err
	}
	return strings.Join(append(unusual.FindAllString(flags, -1), ignored), "\n"), nil
}

// passed notes that the run of a tree was green: the tree in the stamp and, if
// every part could run here, the commit in the file that the next change is
// compared with. If the checkout has changes, or another commit by now, no tree has
// passed.
func passed(ctx context.Context, checkout, ran string, everyPart bool) error {
	status, err := git(ctx, checkout, "status", "--porcelain", "--untracked-files=all")
	if err != nil {
		return err
	}
	if ran == "" || status != "" {
		fmt.Printf("no stamp: the checkout has, or had, changes that no commit has\n%s", status)
		return nil
	}
	unseen, err := unseenFiles(ctx, checkout)
	if err != nil {
		return err
	}
	if unseen != "" {
		fmt.Printf("no stamp: git does not look at these files\n%s", unseen)
		return nil
	}
	tree, err := git(ctx, checkout, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	if strings.TrimSpace(tree) != ran {
		fmt.Println("no stamp: the checkout has another commit than when the run began")
		return nil
	}
	dirs, err := gitDirs(ctx, checkout)
	if err != nil {
		return err
	}
	if err := writeAll(os.Stdout, dirs, stampFile, func(path string) error {
		return os.WriteFile(path, []byte(tree), 0o644)
	}); err != nil || !everyPart {
		return err
	}
	commit, err := git(ctx, checkout, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	fmt.Printf("this commit passed: commit %s in the checkout, with the line %s", passedFile, commit)
	return os.WriteFile(filepath.Join(checkout, passedFile), []byte(commit), 0o644)
}
