package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// mostFailed is how many failed tests may run again. More have one cause that is
// no accident.
const mostFailed = 5

// event is a line that "go test -json" prints (go doc test2json). The tests of
// the editors' plugins print such lines too; their package is the editor.
type event struct {
	Action     string // "pass", "fail", "skip", "output", "build-fail" and others
	Package    string
	ImportPath string // in the place of Package, if it does not compile
	Test       string // "" is the package as a whole
	Output     string
}

// test names a test: its package and its name there.
type test struct{ Package, Name string }

// results are what the tests of one part have reported so far. Its methods are
// safe for concurrent use.
type results struct {
	// certain is called once, when the part is red whatever runs again.
	certain func(why string)

	mu       sync.Mutex // guards the fields below
	outcome  map[test]string
	output   map[test]*tail
	seconds  map[string]float64         // processor seconds of packages; "" is all
	reads    map[string]map[string]bool // paths of others that a package's tests have read
	packages map[string]string          // the outcome of each package; "" while it runs
	begun    map[test]bool              // "go test" says which tests begin; the name "" is the package
	summed   map[string]bool            // packages whose test process has reached its end
	grave    map[string]string          // what a package has printed that is certain if it fails
	cause    map[test]bool              // tests to which "go test" attributes that
	lacks    []string                   // lines that say what is skipped as a whole; see tests/skip
	why      string                     // given to certain
	text     tail                       // what was printed beside the events
}

func newResults(certain func(why string)) *results {
	return &results{
		certain: certain, outcome: map[test]string{}, output: map[test]*tail{}, seconds: map[string]float64{},
		packages: map[string]string{}, grave: map[string]string{}, begun: map[test]bool{}, summed: map[string]bool{},
		cause: map[test]bool{}, reads: map[string]map[string]bool{},
	}
}

// line takes a line of a part's output: an event, or text for people, which it
// returns.
func (r *results) line(line []byte) (text string) {
	var e event
	var seconds float64
	if _, err := fmt.Sscanf(string(line), secondsFormat, &seconds); err == nil {
		r.mu.Lock()
		r.seconds[""] = seconds
		r.mu.Unlock()
		return ""
	}
	if bytes.HasPrefix(line, []byte(`{"`)) && json.Unmarshal(line, &e) == nil && e.Action != "" {
		return r.event(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.add(string(line))
	r.mark(string(line), "")
	if strings.HasPrefix(string(line), lacking) {
		r.lacks = append(r.lacks, strings.TrimSpace(string(line)))
	}
	if hidden.Match(line) {
		r.isCertain(fmt.Sprintf("a result among other text: %.200q", line))
	}
	return string(line)
}

// lacking begins a line of tests/skip.
const lacking = "skipped, because this machine lacks"

// hidden is an event that something else was printed on the same line with.
var hidden = regexp.MustCompile(`\{".*"Action":"(pass|fail|skip)"`)

func (r *results) event(e event) (text string) {
	if e.Package == "" {
		e.Package = e.ImportPath
	}
	name := test{e.Package, e.Test}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.packages[e.Package]; !known {
		r.packages[e.Package] = ""
	}
	switch e.Action {
	case "output", "build-output":
		if r.output[name] == nil {
			r.output[name] = &tail{}
		}
		r.output[name].add(e.Output)
		r.mark(e.Output, e.Package)
		r.summed[e.Package] = r.summed[e.Package] || e.Test == "" && (e.Output == "PASS\n" || e.Output == "FAIL\n")
		if found := neverAgain.FindString(e.Output); found != "" && r.grave[e.Package] == "" {
			r.grave[e.Package] = strings.TrimSpace(e.Test + " " + found)
			r.cause[name] = true
		}
		if strings.HasPrefix(e.Output, "WARNING: DATA RACE") { // also a helper's, whose end nobody may look at
			r.isCertain(strings.TrimSpace(e.Package + " " + e.Test + " " + e.Output))
		}
		var seconds float64
		if _, err := fmt.Sscanf(e.Output, secondsFormat, &seconds); err == nil {
			r.seconds[e.Package] = seconds
		}
		var read string
		if _, err := fmt.Sscanf(e.Output, readFormat, &read); err == nil && e.Action == "output" {
			if r.reads[e.Package] == nil {
				r.reads[e.Package] = map[string]bool{}
			}
			r.reads[e.Package][read] = true
		}
		if e.Test == "" && e.Action == "output" && packageLine.MatchString(e.Output) {
			return e.Output
		}
	case "start", "run":
		r.begun[name] = true
	case "build-fail":
		r.isCertain(e.Package + " does not compile")
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.packages[e.Package] = e.Action
			if e.Action == "fail" {
				r.packageFailed(e.Package)
			}
			r.packageEnded(e.Package, e.Action)
			break
		}
		if r.outcome[name] != "fail" { // two tests of an editor may have one title
			r.outcome[name] = e.Action
		}
		if e.Action == "fail" {
			text = fmt.Sprintf("failed: %s %s\n", e.Package, e.Test)
		}
		if len(r.failedTests()) > mostFailed {
			r.isCertain(fmt.Sprintf("more than %d tests failed", mostFailed))
		}
	}
	return text
}

// packageLine is the last line of "go test" about a package.
var packageLine = regexp.MustCompile(`^(ok|FAIL|---|\?) *\t`)

// packageFailed looks for what makes a package certainly red.
func (r *results) packageFailed(pkg string) {
	failed := false
	if r.grave[pkg] != "" {
		r.isCertain(pkg + ": " + r.grave[pkg])
	}
	for name, outcome := range r.outcome {
		failed = failed || name.Package == pkg && outcome == "fail"
	}
	if !failed {
		r.isCertain(pkg + " failed outside of its tests")
	}
}

// packageEnded looks for tests that have not run to their end.
func (r *results) packageEnded(pkg, action string) {
	for name := range r.begun {
		if name.Package == pkg && name.Name != "" && r.outcome[name] == "" {
			r.isCertain(fmt.Sprintf("%s ended within %s", pkg, name.Name))
		}
	}
	if r.begun[test{pkg, ""}] && action != "skip" && !r.summed[pkg] {
		r.isCertain(pkg + " ended before its tests")
	}
}

// Mark begins a line of output that makes a run red at once; harness.Breach
// prints it.
const Mark = "NEVER AGAIN: "

// neverAgain is what a test process prints if what happened must never happen.
// What a test logs is indented, so only the test process itself prints a panic
// at the beginning of a line.
var neverAgain = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|WARNING: DATA RACE)$|` +
	`testing\.go:\d+: race detected during execution of test`)

// mark sees the mark in a line as it comes, so that a test that hangs later
// cannot hide it.
func (r *results) mark(line, pkg string) {
	if at := strings.Index(line, Mark); at >= 0 {
		r.isCertain(strings.TrimSpace(pkg + " " + line[at+len(Mark):]))
	}
}

// isCertain is called with mu held, or before the part has ended.
func (r *results) isCertain(why string) {
	if r.why == "" {
		r.why = why
		r.certain(why)
	}
}

// mustHaveRun looks for packages that have not even begun. A package stands for
// one directory alone: tests/audit does not stand for audit, whose path its own
// ends with.
func (r *results) mustHaveRun(dirs []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	began := slices.Collect(maps.Keys(r.packages))
	longestFirst := func(a, b string) int { return len(b) - len(a) }
	for _, dir := range slices.SortedFunc(slices.Values(dirs), longestFirst) {
		if strings.Contains(dir, "...") {
			continue
		}
		at := slices.IndexFunc(began, func(pkg string) bool {
			return strings.HasSuffix(pkg, strings.TrimPrefix(dir, "."))
		})
		if at < 0 {
			r.isCertain(dir + " has not run")
			return
		}
		began = slices.Delete(began, at, at+1)
	}
}

// ended judges a part by its end. If it has tests, some must have run, or it says
// that they were skipped; see tests/skip.
func (r *results) ended(err error, hasTests bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pkg, outcome := range r.packages {
		if outcome == "" {
			r.isCertain(fmt.Sprintf("%s has not ended; the part ended with %v", pkg, err))
		}
	}
	switch {
	case err != nil && len(r.failedTests()) == 0:
		r.isCertain(fmt.Sprintf("it ended with %v, and no test failed", err))
	case err == nil && len(r.failedTests()) > 0:
		r.isCertain("a test failed, and it ended with no error")
	case hasTests && len(r.outcome) == 0 && len(r.lacks) == 0:
		r.isCertain("it ran no test")
	}
}

// failedTests are the tests that failed, without those of which a subtest did.
func (r *results) failedTests() []test {
	var failed []test
	for name, outcome := range r.outcome {
		if outcome == "fail" {
			failed = append(failed, name)
		}
	}
	return slices.SortedFunc(slices.Values(slices.DeleteFunc(slices.Clone(failed), func(parent test) bool {
		if own := r.output[parent]; own != nil && logged.MatchString(own.text) {
			return false // it may have failed by itself
		}
		return slices.ContainsFunc(failed, func(child test) bool {
			return child.Package == parent.Package && strings.HasPrefix(child.Name, parent.Name+"/")
		})
	})), func(a, b test) int { return strings.Compare(a.Package+" "+a.Name, b.Package+" "+b.Name) })
}

// logged is what t.Error and t.Log print.
var logged = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: `)

// failed is failedTests for other goroutines.
func (r *results) failed() []test {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failedTests()
}

// counts are how many tests had each outcome: "pass", "fail" and "skip". What is
// skipped as a whole counts as one.
func (r *results) counts() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[string]int{}
	for outcome := range maps.Values(r.outcome) {
		counts[outcome]++
	}
	if len(r.lacks) > 0 {
		counts["skip"] += len(r.lacks)
	}
	return counts
}

// passed reports whether a test has run and passed. A suite of mocha has if one of
// its tests has: it fails as a whole if what comes before its tests fails.
func (r *results) passed(name test) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if own := r.outcome[name]; own != "" {
		return own == "pass"
	}
	for of, outcome := range r.outcome {
		if outcome == "pass" && of.Package == name.Package &&
			(of.Name == name.Name || strings.HasPrefix(of.Name, name.Name+" ")) {
			return true
		}
	}
	return false
}

// all is everything that was printed for people, and the outputs of packages and
// of tests that have not passed.
func (r *results) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	all.WriteString(r.text.String())
	order := func(a, b test) int { return strings.Compare(a.Package+" "+a.Name, b.Package+" "+b.Name) }
	for _, t := range slices.SortedFunc(maps.Keys(r.output), order) {
		outcome := r.outcome[t]
		if t.Name == "" {
			outcome = r.packages[t.Package]
		}
		// A panic may come after the end of the test that it is attributed to.
		if outcome != "pass" && outcome != "skip" || r.cause[t] {
			all.WriteString(r.output[t].String())
		}
	}
	return all.String()
}

// merge adds the results of another run.
func (r *results) merge(other *results) {
	for name, outcome := range other.outcome {
		if r.outcome[name] != "fail" {
			r.outcome[name], r.output[name] = outcome, other.output[name]
		}
	}
}

// said is what a test printed, with that of the tests that it is part of.
func (r *results) said(name test) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for {
		if output := r.output[name]; output != nil {
			all.WriteString(output.String())
		}
		parent := strings.LastIndexByte(name.Name, '/')
		if parent < 0 {
			return all.String()
		}
		name.Name = name.Name[:parent]
	}
}

// tail keeps the end of a text.
type tail struct{ text string }

// mostKept is how much of an output is kept, in bytes.
const mostKept = 1 << 16

func (k *tail) add(text string) {
	k.text += text
	if len(k.text) > 2*mostKept {
		k.text = "…" + k.text[len(k.text)-mostKept:]
	}
}

func (k *tail) String() string { return k.text }
