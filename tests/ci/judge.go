package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// errRed is a run that has failed; what failed is printed.
var errRed = errors.New("red")

// judge runs everything, or what a change can matter to, and prints the result.
func judge(ctx context.Context, all bool) error {
	c, err := decide(ctx, all)
	if err != nil {
		return err
	}
	fmt.Println("this run:", c.why)
	remove, err := buildPrograms(ctx)
	if err != nil {
		return err
	}
	defer remove()
	return verdict(ctx, os.Stdout, lanes(c), true)
}

// only runs parts by their names.
func only(ctx context.Context, names []string) error {
	c, err := decide(ctx, true)
	if err != nil {
		return err
	}
	chosen, err := named(names, c)
	if err != nil {
		return err
	}
	return verdict(ctx, os.Stdout, chosen, false)
}

// buildPrograms builds what the tests of all packages start, once. The returned
// function removes it.
func buildPrograms(ctx context.Context) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "sidecar-programs-")
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	build := exec.CommandContext(ctx, "tests/build-programs", dir)
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		remove()
		return nil, fmt.Errorf("build the programs that tests start: %w", err)
	}
	for name, value := range map[string]string{
		"SIDECAR_PROGRAMS": dir, "SIDECAR_BINARY": filepath.Join(dir, "cmd/sandbox-sidecar"),
	} {
		if err := os.Setenv(name, value); err != nil { //nolint:forbidigo // before anything else runs
			remove()
			return nil, err
		}
	}
	return remove, nil
}

// verdict runs lanes, and what failed again, and prints the result. noted adds it
// to the history of flaky tests. The error is errRed if the run is red.
func verdict(ctx context.Context, out io.Writer, lanes [][]part, noted bool) error {
	begun := time.Now()
	all, red := runLanes(ctx, out, lanes, os.Getenv(toTheEnd) != "")
	whole := red == "" // every part has ended by itself
	flakes, red := secondTry(ctx, out, all, red)
	report(out, all, red)
	showFlakes(out, flakes)
	if noted && whole {
		more, err := note(ctx, out, ".", flakes)
		if err != nil {
			return err
		}
		if red == "" {
			red = more
		}
		if red == "" {
			if red, err = judgeReads(ctx, ".", readsOf(all)); err != nil {
				return err
			}
		}
	}
	if whole {
		if err := noteTimes(ctx, all, noted); err != nil {
			fmt.Fprintf(out, "note: the processor seconds are not noted: %v\n", err)
		}
	}
	counts := map[string]int{}
	for _, r := range all {
		for outcome, count := range r.counts() {
			counts[outcome] += count
		}
	}
	if red == "" { // what failed has passed alone
		counts["pass"], counts["fail"] = counts["pass"]+counts["fail"], 0
	} else {
		counts["fail"] = max(counts["fail"], 1) // no test, but a check
	}
	fmt.Fprintf(out, "\nall parts took %s\n%d passed, %d failed, %d skipped\n", time.Since(begun).Round(time.Second),
		counts["pass"], counts["fail"], counts["skip"])
	if red != "" {
		fmt.Fprintf(out, "red: %s\n", red)
		return errRed
	}
	return nil
}

// readsOf are the reads of all parts, by package and path.
func readsOf(all []*ran) map[string]map[string]bool {
	reads := map[string]map[string]bool{}
	for _, r := range all {
		for pkg, names := range r.reads {
			if reads[pkg] == nil {
				reads[pkg] = map[string]bool{}
			}
			maps.Copy(reads[pkg], names)
		}
	}
	return reads
}

// secondTry runs what failed again, unless the run is red already.
func secondTry(ctx context.Context, out io.Writer, all []*ran, red string) ([]flake, string) {
	failed := 0
	for _, r := range all {
		failed += len(r.failed())
	}
	if red == "" && failed > mostFailed {
		red = fmt.Sprintf("more than %d tests failed", mostFailed)
	}
	var flakes []flake
	for _, r := range all {
		if red != "" {
			break
		}
		var more []flake
		more, red = again(ctx, out, r)
		flakes = append(flakes, more...)
	}
	return flakes, red
}

// report prints what failed, with its output.
func report(out io.Writer, all []*ran, red string) {
	if red == "" {
		return
	}
	for _, r := range all {
		for _, t := range r.failed() {
			fmt.Fprintf(out, "\n%s: failed: %s %s\n%s", r.name, t.Package, t.Name, r.said(t))
		}
		if r.why != "" {
			fmt.Fprintf(out, "\n%s: failed: %s\n%s", r.name, r.why, r.all())
		}
	}
	fmt.Fprintln(out)
}
