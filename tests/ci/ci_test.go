package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// sample is a part that runs tests of the package testdata/sample or, if that is
// its name, testdata/breach. What fails "once" there fails once for each part.
func sample(t *testing.T, name, tests string, flags ...string) part {
	t.Helper()
	env := []string{"SAMPLE=" + t.TempDir()}
	switch name {
	case "survivor":
		env = append(env, "SAMPLE_SURVIVOR=1")
	case "none":
		env = append(env, "SAMPLE_NONE=1")
	}
	if how, is := strings.CutPrefix(name, "ends: "); is {
		env = append(env, "SAMPLE_ENDS="+how)
	}
	if name == "race" {
		env = append(env, "CGO_ENABLED=1")
	}
	flags = append(flags, "-count=1", "-run", "^("+tests+")$")
	dir := "./testdata/sample"
	if name == "breach" {
		dir = "./testdata/breach"
	}
	return goTests(name, "", nil, env, flags, []string{dir})
}

// What runs again, and what is red at once. The tests of the sample pass when
// they run a second time.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]verdictCase{
		"all pass": {part: func(t *testing.T) part { return sample(t, "go", "TestPasses|TestSkipped") }},
		"one fails once": {
			part:  func(t *testing.T) part { return sample(t, "go", "TestPasses|TestOnce") },
			flaky: []string{"TestOnce"}, runAgain: true,
		},
		"subtests fail once": {
			part:  func(t *testing.T) part { return sample(t, "go", "TestOnceBelow") },
			flaky: []string{"TestOnceBelow/a+b_(c)", "TestOnceBelow/d/e"}, runAgain: true,
		},
		"one fails each time": {
			part: func(t *testing.T) part { return sample(t, "go", "TestPasses|TestAlways") },
			red:  "TestAlways fails alone", runAgain: true,
		},
		"six fail": {
			part: func(t *testing.T) part { return sample(t, "go", "TestMany") },
			red:  "more than 5 tests failed",
		},
		"a breach, once": {
			part: func(t *testing.T) part { return sample(t, "breach", "TestOnce") },
			red:  "TestOnce: the attack works",
		},
		"a breach, and then a hang": {
			part: func(t *testing.T) part { return sample(t, "breach", "TestThenHangs") },
			red:  "TestThenHangs: the attack works",
		},
		"a panic, once": {part: func(t *testing.T) part { return sample(t, "go", "TestPanic") }, red: "panic: once"},
		"the time limit, once": {
			part: func(t *testing.T) part { return sample(t, "go", "TestHangs", "-timeout", "1s") },
			red:  "panic: test timed out after 1s",
		},
		"a race, once": {
			part: func(t *testing.T) part { return sample(t, "race", "TestRace", "-race") }, red: "WARNING: DATA RACE",
		},
		"one fails once, and another then panics alone": {
			part: func(t *testing.T) part { return sample(t, "go", "TestOnce|TestPanicsAlone") },
			red:  "panic: alone", runAgain: true, flaky: []string{"TestOnce"},
		},
		"a survivor, once": {
			part: func(t *testing.T) part { return sample(t, "survivor", "TestPasses") },
			red:  "failed outside of its tests",
		},
		"a part and the whole": {
			part: func(t *testing.T) part { return sample(t, "go", "TestWhole") },
			red:  "TestWhole fails alone", runAgain: true, flaky: []string{"TestWhole/a"},
		},
		"a race in a helper": {
			part: func(t *testing.T) part { return sample(t, "race", "TestRaceOfAHelper", "-race") },
			red:  "WARNING: DATA RACE",
		},
		"no test, with success": {
			part: func(t *testing.T) part { return sample(t, "none", "TestPasses") }, red: "ended before its tests",
		},
		"what does not compile": {
			part: func(*testing.T) part { return goTests("go", "", nil, nil, nil, []string{"./testdata/broken"}) },
			red:  "does not compile",
		},
		"a check": {
			part: func(*testing.T) part {
				return part{name: "check", command: []string{"sh", "-c", "echo too long; exit 3"}}
			},
			red: "exit status 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.mustBe(t)
		})
	}
}

// A failure that may be forgiven forgives no other: the process has to reach the
// end of its tests.
func TestVerdict_OfWhatEndsTooSoon(t *testing.T) {
	t.Parallel()
	const within = "sample ended within TestThenEnds"
	for how, red := range map[string]string{
		"fatal": within, "exit": within, "kill": within, "panic": within, "hang": within, "close": within,
		"success": "TestThenEnds panic: unexpected call to os.Exit(0)",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			verdictCase{
				part: func(t *testing.T) part {
					return sample(t, "ends: "+how, "TestOnceAndEnds|TestThenEnds", "-timeout", "10s")
				},
				red: red,
			}.mustBe(t)
		})
	}
}

// verdictCase is a part and how it is judged.
type verdictCase struct {
	part     func(t *testing.T) part
	red      string // part of the reason; "" is green
	flaky    []string
	runAgain bool
}

func (test verdictCase) mustBe(t *testing.T) {
	t.Helper()
	p := test.part(t)
	if slices.Contains(p.command, "-race") {
		if _, err := exec.LookPath("gcc"); err != nil {
			harness.Skip(t, "gcc", "the race detector needs a C compiler")
		}
	}
	var out bytes.Buffer
	all, certain := runLanes(t.Context(), &out, [][]part{{p}}, false)
	flakes, red := secondTry(t.Context(), &out, all, certain)
	report(&out, all, red)
	showFlakes(&out, flakes)
	if test.red == "" && red != "" || !strings.Contains(red, test.red) {
		t.Errorf("red: %q, want %q\n%s", red, test.red, quoted(&out))
	}
	var names []string
	for _, f := range flakes {
		names = append(names, strings.TrimPrefix(f.Test, sampleImport+" "))
		if !strings.Contains(out.String(), "the first time") {
			t.Errorf("the first output is missing:\n%s", quoted(&out))
		}
	}
	if strings.Join(names, " ") != strings.Join(test.flaky, " ") {
		t.Errorf("flaky: %q, want %q", names, test.flaky)
	}
	if again := strings.Contains(out.String(), "once more, alone"); again != test.runAgain {
		t.Errorf("ran again: %t\n%s", again, quoted(&out))
	}
}

const sampleImport = "github.com/sandbox-sidecar/sandbox-sidecar/tests/ci/testdata/sample"

// quoted is an output without marks, or the run of this test would be red at once.
func quoted(out *bytes.Buffer) string { return strings.ReplaceAll(out.String(), Mark, "(mark) ") }

// A part that ends before its tests have, or without any, is red.
func TestResults_OfWhatDidNotRun(t *testing.T) {
	t.Parallel()
	const fails = `{"Action":"fail","Package":"p","Test":"T"}` + "\n"
	failure := errors.New("exit status 1")
	for name, test := range map[string]struct {
		lines string
		err   error
		red   string
	}{
		"whole":          {fails + `{"Action":"fail","Package":"p"}`, failure, ""},
		"ended too soon": {fails, failure, "p has not ended"},
		"a package of two": {
			`{"Action":"start","Package":"q"}` + "\n" + fails + `{"Action":"fail","Package":"p"}`, failure,
			"q has not ended",
		},
		"nothing":     {"text\n", nil, "it ran no test"},
		"skipped":     {"skipped, because this machine lacks debian: x\n", nil, ""},
		"a wrong end": {fails + `{"Action":"fail","Package":"p"}`, nil, "no error"},
		"a long panic": {
			`{"Action":"output","Package":"p","Test":"T","Output":"panic: x\n"}` + "\n" + strings.Repeat(
				`{"Action":"output","Package":"p","Test":"T","Output":"`+strings.Repeat("x", 1000)+`"}`+"\n", 1000) +
				fails + `{"Action":"fail","Package":"p"}`, failure, "panic: x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			red := ""
			r := newResults(func(why string) { red = why })
			for line := range strings.Lines(test.lines) {
				r.line([]byte(line))
			}
			r.ended(test.err, true)
			if test.red == "" && red != "" || !strings.Contains(red, test.red) {
				t.Errorf("red: %q, want %q", red, test.red)
			}
		})
	}
}

// A panic is shown if it is attributed to a test that has passed.
func TestResults_ShowAPanicAfterATest(t *testing.T) {
	t.Parallel()
	r := newResults(func(string) {})
	for _, e := range []event{
		{Action: "pass", Test: "TestA"},
		{Action: "output", Test: "TestA", Output: "panic: why\n"},
		{Action: "output", Test: "TestA", Output: "goroutine 1\n"},
		{Action: "fail"},
	} {
		e.Package = "p"
		r.event(e)
	}
	if all := r.all(); !strings.Contains(all, "goroutine 1") {
		t.Errorf("%q", all)
	}
}

// Whichever package has no event, it is the one that is missed.
func TestResults_OfAPackageThatDidNotBegin(t *testing.T) {
	t.Parallel()
	packages := ourPackages(t)
	var dirs []string
	for _, p := range packages {
		dirs = append(dirs, "./"+p.Dir)
	}
	for missing := -1; missing < len(packages); missing++ {
		red, want := "", ""
		r := newResults(func(why string) { red = why })
		for i, p := range packages {
			if i == missing {
				want = dirs[i] + " has not run"
			} else {
				r.event(event{Action: "start", Package: p.ImportPath})
			}
		}
		if r.mustHaveRun(dirs); red != want {
			t.Errorf("got %q, want %q", red, want)
		}
	}
}

// A part that is certainly red ends the others, with all their processes.
func TestRunLanes_ACertainFailureEndsTheOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	slow := part{name: "slow", command: []string{"sh", "-c", "sleep 600 & echo $! >pid.new && mv pid.new pid; wait"}}
	slow.command[2] = strings.ReplaceAll(slow.command[2], "pid", begun)
	red := part{name: "red", command: []string{"sh", "-c", "until [ -e " + begun + " ]; do sleep 0.01; done; exit 1"}}
	never := part{name: "never", command: []string{"touch", filepath.Join(dir, "never")}}
	start := time.Now()
	_, certain := runLanes(t.Context(), &bytes.Buffer{}, [][]part{{slow, never}, {red, never}}, false)
	if !strings.HasPrefix(certain, "red: ") || time.Since(start) > 5*time.Minute {
		t.Errorf("%q after %v", certain, time.Since(start))
	}
	pid, err := os.ReadFile(begun)
	if err != nil {
		t.Fatal(err)
	}
	if !deadline.Until(time.Minute, func() bool { return !alive(strings.TrimSpace(string(pid))) }) {
		t.Fatal("a process of the ended part lives")
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("the next part of a lane has run")
	}
}

// Where a machine is seldom at hand, the others run to their end. The run is as red.
func TestRunLanes_ToTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ended := filepath.Join(dir, "ended")
	red := part{name: "red", command: []string{"false"}}
	after := part{name: "after", command: []string{"touch", ended}}
	_, certain := runLanes(t.Context(), &bytes.Buffer{}, [][]part{{red, red, after}}, true)
	if !strings.HasPrefix(certain, "red: ") {
		t.Errorf("%q", certain)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the next part has not run: %v", err)
	}
}

func alive(pid string) bool {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return len(out) > 0 && out[0] != 'Z'
}

// The editors' tests print events among other text.
func TestResults_OfEditors(t *testing.T) {
	t.Parallel()
	r := newResults(func(why string) { t.Errorf("certain: %s", why) })
	for line := range strings.Lines(`
  ✔ a title (12ms)
{"Action":"pass","Package":"vscode","Test":"a title"}
{"Action":"output","Package":"vscode","Test":"a suite","Output":"before all: no browser\n"}
{"Action":"fail","Package":"vscode","Test":"a suite"}
{"Action":"fail","Package":"vscode"}
{"not": "an event"}
`) {
		r.line([]byte(line))
	}
	r.ended(context.DeadlineExceeded, true)
	failed := r.failed()
	if len(failed) != 1 || failed[0].Name != "a suite" || r.said(failed[0]) != "before all: no browser\n" {
		t.Errorf("failed: %q", failed)
	}
	if !r.passed(test{"vscode", "a title"}) || !r.passed(test{"vscode", "a"}) || r.passed(test{"vscode", "a suite"}) ||
		r.passed(test{"neovim", "a title"}) {
		t.Error("passed is wrong")
	}
	commands := vscodePart(suites{all: true}).again([]test{{"vscode", "a (suite)"}, {"vscode", "b"}})
	if got := strings.Join(commands[0], " "); got != `tests/on-debian clients/vscode/tests/run -g ^(a \(suite\)|b)` {
		t.Error(got)
	}
	commands = neovimPart("newest", suites{all: true}).again([]test{
		{"neovim", "test_a.lua | x"}, {"neovim", "test_a.lua | y | 1"},
	})
	if got := strings.Join(commands[0], " "); got != "tests/on-debian clients/neovim/tests/run "+
		"clients/neovim/tests/test_a.lua" {
		t.Error(got)
	}
}

// All suites of an editor are all, also if a change chooses some of them by name: of
// one of the plugin itself, only its journeys and the changed suites ran.
func TestEditors_AllAreNotTheNamedOnes(t *testing.T) {
	t.Parallel()
	named := suites{all: true, files: []string{"tests/ui/a.test.ts"}}
	for _, c := range []struct {
		tests suites
		want  bool
	}{{named, true}, {suites{all: true}, true}, {suites{files: named.files}, false}} {
		vscode, neovim := vscodePart(c.tests), neovimPart("newest", c.tests)
		if all := slices.Contains(vscode.env, "SUITES="); all != c.want {
			t.Errorf("VS Code, %+v: %q", c.tests, vscode.env)
		}
		last := neovim.command[len(neovim.command)-1]
		if all := strings.HasSuffix(last, "clients/neovim/tests/run"); all != c.want {
			t.Errorf("Neovim, %+v: %q", c.tests, neovim.command)
		}
	}
}

// The processor time of a part counts, also of processes that nobody waits for.
func TestTimed(t *testing.T) {
	t.Parallel()
	work := "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"
	self := filepath.Join(t.TempDir(), "ci")
	if out, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := filepath.Join(t.TempDir(), "pid")
	line := "(sh -c '" + work + "' & echo $! >" + pid + "); timeout 60 tail -s 0.1 --pid=$(cat " + pid +
		") -f /dev/null; exit 7" // it takes little itself, however long it waits
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/bash\n"+line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	seconds := func(args ...string) float64 {
		t.Helper()
		command := exec.Command(self, append(append([]string{"timed"}, args...), script)...)
		out, _ := command.Output()
		if status := command.ProcessState.ExitCode(); status != 7 {
			t.Errorf("exit status %d: %s", status, out)
		}
		r := newResults(func(string) {})
		for text := range bytes.Lines(out) {
			r.line(text)
		}
		return r.seconds[""]
	}
	if without, with := seconds(), seconds(orphansFlag); without == 0 || with < 2*without {
		t.Errorf("%f seconds, and %f with the orphan", without, with)
	}
}

// A package that hangs at a low priority ends by timed's own limit, and is red.
func TestTimed_EndsWhatHangs(t *testing.T) {
	t.Parallel()
	self := filepath.Join(t.TempDir(), "ci")
	if out, err := exec.Command("go", "build", "-o", self, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for limit, ends := range map[string]bool{"1s": true, "1h": false, "": false} {
		command := exec.Command(self, "timed", orphansFlag, "/bin/sh", "-c", "sleep 3; echo at-end")
		command.Env = append(os.Environ(), limitVariable+"="+limit)
		out, _ := command.CombinedOutput()
		hung := strings.Contains(string(out), "panic: test timed out")
		if strings.Contains(string(out), "at-end") == ends || hung != ends || command.ProcessState.Success() == ends {
			t.Errorf("limit %q: %v: %s", limit, command.ProcessState, out)
		}
	}
}

// A limit that is not understood is none, so nothing runs with it. The properties,
// which "go test" does not limit, have one.
func TestTimed_NeedsALimit(t *testing.T) {
	for value, ok := range map[string]bool{
		"": true, "1h0m0s": true, "1": false, "x": false, "0s": false, "-1s": false,
	} {
		if _, err := limitOf(value); (err == nil) != ok {
			t.Errorf("%q: %v", value, err)
		}
	}
	for _, programs := range []string{"", "/programs"} {
		t.Setenv("SIDECAR_PROGRAMS", programs)
		for limit, p := range map[time.Duration]part{
			patience:    propertiesPart(true),
			packageTime: goTests("go", "root", nil, []string{"CGO_ENABLED=0"}, nil, nil),
		} {
			ours, theirs := "", "" // the last ones count
			for _, entry := range p.env {
				if value, is := strings.CutPrefix(entry, limitVariable+"="); is {
					ours = value
				}
			}
			for i, word := range p.command {
				if word == "-timeout" {
					theirs = p.command[i+1]
				}
			}
			want := [2]string{"", limit.String()}
			if programs != "" {
				want = [2]string{limit.String(), "0"}
			}
			if got := [2]string{ours, theirs}; got != want {
				t.Errorf("programs in %q: %s has %q, want %q", programs, p.name, got, want)
			}
		}
	}
}
