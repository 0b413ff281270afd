//go:build linux

// Command suites runs other people's test suites without a sandbox and in one,
// and prints the tests that end differently: "make test-suites".
//
// The suites are CPython's, of Debian's libpython3.11-testsuite, and Go's own.
// They try what an operating system promises programs much more thoroughly than
// any test of ours. Each difference must be in the file expected, which names
// the part of docs/differences.md that explains it to users. Any other fails.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Results are how tests ended, by name: "ok", "skipped", "failed", or "" for a
// test that did not run.
type results map[string]string

// suite is somebody's tests. A unit is what runs at once: a Python module, a Go
// package.
type suite struct {
	name  string
	units []string
	// run runs one unit.
	run func(r *runner, unit string) (results, error)
}

func suites() []suite {
	return []suite{
		{"cpython", pythonModules, runPython},
		{"go", goPackages, runGo},
	}
}

func main() {
	var r runner
	sidecar := flag.String("sidecar", "bin/sandbox-sidecar", "program to test")
	only := flag.String("run", "", "units to run: a pattern of SUITE/UNIT")
	expected := flag.String("expected", "tests/suites/expected", "file of the differences that are explained")
	flag.DurationVar(&r.limit, "limit", 10*time.Minute, "longest time that a unit may take")
	flag.Parse()
	// A caught signal is not inherited, and an ignored one would be: the shell
	// ignores SIGINT for commands in the background.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGHUP, unix.SIGQUIT, unix.SIGTERM)
	defer stop()
	r.ctx = ctx
	err := func() error {
		pattern, err := regexp.Compile(*only)
		if err != nil {
			return err
		}
		known, err := readExpected(*expected)
		if err != nil {
			return err
		}
		if err := r.prepare(*sidecar); err != nil {
			return err
		}
		defer r.remove()
		return compare(&r, known, pattern)
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

var errUnexplained = errors.New("mend what is not explained, or add it to the file of expected differences")

// compare runs all units and prints a table of their differences.
func compare(r *runner, known []expectation, pattern *regexp.Regexp) error {
	unexplained, different, total := 0, 0, 0
	for _, s := range suites() {
		for _, unit := range s.units {
			if !pattern.MatchString(s.name + "/" + unit) {
				continue
			}
			began := time.Now()
			all, differ, err := r.differences(s, unit)
			if r.ctx.Err() != nil {
				return context.Cause(r.ctx)
			}
			if err != nil {
				fmt.Fprintf(os.Stdout, "%s/%s: %v\n", s.name, unit, err)
				unexplained++
				continue
			}
			fmt.Fprintf(os.Stdout, "%s/%s: %d tests, %d differ (%s)\n", s.name, unit, all, len(differ),
				time.Since(began).Round(time.Second))
			total, different = total+all, different+len(differ)
			for _, d := range differ {
				why := explain(known, s.name, d.test)
				if why == "" {
					why = "NOT EXPLAINED"
					unexplained++
				}
				fmt.Fprintf(os.Stdout, "  %s: %s outside, %s inside: %s\n", d.test, d.outside, d.inside, why)
			}
		}
	}
	fmt.Fprintf(os.Stdout, "%d of %d tests differ; without an explanation: %d\n", different, total, unexplained)
	if unexplained > 0 {
		return errUnexplained
	}
	return nil
}

// difference is a test that ends differently inside.
type difference struct{ test, outside, inside string }

// differences runs a unit outside and inside. Tests that differ have a second
// chance, because some fail by themselves now and then.
func (r *runner) differences(s suite, unit string) (total int, list []difference, err error) {
	var rounds []map[string]difference
	for range 2 {
		var ran [2]results
		for i, inside := range []bool{false, true} {
			r.inside = inside
			if ran[i], err = s.run(r, unit); err != nil {
				return 0, nil, err
			}
		}
		total = len(ran[0])
		differ := map[string]difference{}
		for test := range union(ran[0], ran[1]) {
			outside, inside := cmp.Or(ran[0][test], "absent"), cmp.Or(ran[1][test], "absent")
			if outside != inside {
				differ[test] = difference{test, outside, inside}
			}
		}
		rounds = append(rounds, differ)
		if len(differ) == 0 {
			break
		}
	}
	for _, test := range slices.Sorted(maps.Keys(rounds[0])) {
		if d, again := rounds[len(rounds)-1][test]; again {
			list = append(list, d)
		}
	}
	return total, list, nil
}

func union(a, b results) results {
	all := maps.Clone(a)
	if all == nil {
		all = results{}
	}
	maps.Copy(all, b)
	return all
}

// expectation is a line of the file of expected differences.
type expectation struct {
	suite string
	test  *regexp.Regexp
	why   string // a heading of docs/differences.md
}

// readExpected reads lines "SUITE PATTERN REASON"; the reason has blanks.
func readExpected(file string) ([]expectation, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []expectation
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s: no reason in %q", filepath.Base(file), line)
		}
		pattern, err := regexp.Compile("^(?:" + fields[1] + ")$")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		list = append(list, expectation{fields[0], pattern, strings.Join(fields[2:], " ")})
	}
	return list, nil
}

func explain(known []expectation, suite, test string) string {
	for _, e := range known {
		if e.suite == suite && e.test.MatchString(test) {
			return e.why
		}
	}
	return ""
}
