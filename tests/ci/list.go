package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// times are the processor seconds of the last run that ended, by part and by
// package; those of a whole part are at "".
type times map[string]map[string]float64

// noteTimes notes what the parts of a run have taken, for the checkout's origin
// too if it is a run of .ci/run. What was not measured stays.
func noteTimes(ctx context.Context, all []*ran, ofChange bool) error {
	dirs, err := gitDirs(ctx, ".")
	if err != nil {
		return err
	}
	if !ofChange {
		dirs = dirs[:1]
	}
	t, err := readTimes(dirs[0])
	if err != nil {
		return err
	}
	for _, r := range all {
		if t[r.name] == nil {
			t[r.name] = map[string]float64{}
		}
		maps.Copy(t[r.name], r.seconds)
		t[r.name][""] = r.processor.Seconds()
	}
	text, err := json.MarshalIndent(t, "", "\t")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		// Worktrees share it, and one may read it now.
		fresh := filepath.Join(dir, fmt.Sprintf("%s.%d", timesFile, os.Getpid()))
		if err := os.WriteFile(fresh, text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(fresh, filepath.Join(dir, timesFile)); err != nil {
			return err
		}
	}
	return nil
}

// readTimes reads what a git directory has of them; nothing is no error.
func readTimes(dir string) (times, error) {
	t := times{}
	path := filepath.Join(dir, timesFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove the file", path, err)
	}
	return t, nil
}

// list prints which package's tests run in which part, and the processor seconds
// that they took when they last ran.
func list(ctx context.Context, out io.Writer) error {
	c, err := decide(ctx, false)
	if err != nil {
		return err
	}
	everything, err := decide(ctx, true)
	if err != nil {
		return err
	}
	packages, err := listPackages(ctx, ".")
	if err != nil {
		return err
	}
	dirs, err := gitDirs(ctx, ".")
	if err != nil {
		return err
	}
	t, err := readTimes(dirs[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Tests and, after a slash, the processor seconds of the last run; - for none.\n"+
		".ci/run now runs %s. In brackets is what it leaves out; \"make test-all\" runs that too.\n\n", c.why)
	fmt.Fprint(out, "In part go, * is a package in which tests that repeat themselves do so as often as they can.\n\n")
	now := func(name string) bool { return slices.Contains(slices.Concat(c.whole, c.others), name) }
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "package\tgo\tuser\trace\n")
	for _, p := range packages {
		tests, once, err := countTests(p)
		if err != nil {
			return err
		}
		if tests == 0 {
			continue
		}
		name := "./" + p.Dir
		often := ""
		if slices.Contains(c.whole, name) {
			often = "*"
		}
		fmt.Fprintf(table, "%s\t%s%s\t%s\t%s\n", p.Dir, t.cell("go", p, tests, true, now(name)), often,
			t.cell("user", p, tests-once, slices.Contains(everything.user, name), slices.Contains(c.user, name)),
			t.cell("race", p, tests, slices.Contains(everything.race, name), slices.Contains(c.race, name)))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	parts := slices.Concat(lanes(c)...)
	for _, p := range slices.Concat(lanes(everything)...) {
		runs := slices.ContainsFunc(parts, func(other part) bool { return other.name == p.name })
		left := ""
		if !runs {
			left = ", left out now"
		}
		took := "not measured yet"
		if seconds, known := t[p.name][""]; known {
			took = fmt.Sprintf("%.0f processor seconds", seconds)
		}
		fmt.Fprintf(out, "part %s (%s): %s%s\n", p.name, p.as, took, left)
	}
	fmt.Fprintln(out, "\nPart user leaves out the packages of tests/run-once, and single tests that call\n"+
		"harness.Once, because an ordinary user would see the same.")
	return nil
}

// cell is what the table has of a package in a part.
func (t times) cell(part string, p pkg, tests int, ever, now bool) string {
	if !ever {
		return "-"
	}
	text := fmt.Sprint(tests)
	seconds, known := t[part][p.ImportPath]
	if !known && part == "go" {
		seconds, known = t["go-others"][p.ImportPath]
	}
	if known {
		text += fmt.Sprintf("/%.0f", seconds)
	}
	if !now {
		text = "[" + text + "]"
	}
	return text
}

var testFunction = regexp.MustCompile(`(?m)^func Test[A-Z].*testing\.T\)`)

// countTests counts the tests of a package, and those that run once.
func countTests(p pkg) (tests, once int, err error) {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return 0, 0, err
		}
		tests += len(testFunction.FindAll(source, -1))
		once += strings.Count(string(source), "harness.Once(")
	}
	return tests, once, nil
}
