//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// castHere plays a table with the real program and a home of the test's.
func castHere(t *testing.T, table string) cast {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	victim := filepath.Join(t.TempDir(), "victim")
	harness.Victim(t, "tests/macos/victim", victim)
	return cast{
		table: table, binary: harness.Binary(t), victim: victim, watcher: w.OutsidePath("none"),
		props: "testdata/files", dir: w.Outside, out: t.TempDir(), env: harness.Environ(w),
	}
}

// The story's player is right before a Mac depends on it: here it plays rows that
// Linux has, with the real program.
func TestStory_Here(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	harness.RequirePrograms(t, "git", "python3", "stty")
	c := castHere(t, "testdata/story_linux.txt")
	rows, err := play(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := writeRows(rows, filepath.Join(c.out, "story.tsv"), &printed); err != nil {
		t.Errorf("%v\n%s", err, printed.String())
	}
	printedThere := read(t, filepath.Join(c.out, "secret.inside.txt"))
	if !strings.Contains(printedThere, "refused by the sandbox") {
		t.Errorf("what was printed is not kept: %s", printedThere)
	}
}

// What is not as the table says is a row that differs, of each kind.
func TestStory_FindsDifferences(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	table := filepath.Join(t.TempDir(), "wrong.txt")
	harness.Write(t, table, "works | default | ok | fails | true\nfails | default | ok | ok | false\n"+
		"dies | default | ok | ok | kill -9 $$\n")
	rows, err := play(t.Context(), castHere(t, table))
	if err != nil {
		t.Fatal(err)
	}
	var differ []string
	for _, r := range rows {
		if r.differs() {
			differ = append(differ, r.what)
		}
	}
	want := []string{"inside: works", "outside: fails", "inside: fails", "outside: dies", "inside: dies"}
	if !slices.Equal(differ, want) {
		t.Errorf("%q differ, want %q", differ, want)
	}
}

// A record is kept whatever became of its command.
func TestRecords_Here(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := recordsCommand(t.Context(), "testdata/records_linux.txt", dir)
	table := read(t, filepath.Join(dir, "records.tsv"))
	if err == nil || !strings.Contains(table, "differs\tempty.txt\twritten\tempty") {
		t.Errorf("%v: %s", err, table)
	}
	for name, want := range map[string]string{"kept.txt": dir + "\n", "failed.txt": "why\n", "empty.txt": ""} {
		if got := read(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if records, err := readRecords(read(t, "testdata/records.txt")); err != nil || len(records) < 8 {
		t.Errorf("%d records: %v", len(records), err)
	}
}

// Each kind of step runs here, succeeds and fails, and keeps its whole output.
func TestStep_Here(t *testing.T) {
	dir := t.TempDir()
	golden := filepath.Join(dir, "golden.txt")
	harness.Write(t, golden, "# comment\na TestA\n")
	passes := `echo '{"Action":"pass","Package":"a","Test":"TestA"}'`
	for name, try := range map[string]struct {
		script   string
		expected expectation
		good     bool
	}{
		"tests":           {passes, expectation{tests: golden}, true},
		"tests-red":       {passes + `; exit 1`, expectation{tests: golden}, false},
		"tests-gone":      {"echo nothing", expectation{tests: golden}, false},
		"success":         {"echo said", expectation{success: true}, true},
		"failure":         {"echo said; exit 3", expectation{success: true}, false},
		"killed":          {"kill -9 $$", expectation{success: true}, false},
		"table":           {"echo said", expectation{table: golden}, true},
		"table-differs":   {"echo said; false", expectation{table: golden}, false},
		"knows-the-place": {`test "$SIDECAR_EVIDENCE" = ` + dir, expectation{success: true}, true},
	} {
		s := step{name: name, command: []string{"sh", "-c", try.script}, expected: try.expected}
		var out bytes.Buffer
		if err := s.run(t.Context(), dir, &out); (err == nil) != try.good {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if _, err := os.Stat(filepath.Join(dir, name+".txt")); err != nil {
			t.Errorf("%s: its output is not kept: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := step{name: "ended", command: []string{"sh", "-c", "sleep 600"}, expected: expectation{success: true}}
	if err := s.run(ctx, dir, &bytes.Buffer{}); err == nil {
		t.Error("a step that was ended is green")
	}
}

// .ci/run goes on after a fault on a Mac, and is red at its end. Elsewhere it ends
// at the first. Here all that it starts is a stand-in that notes its call.
func TestRun_GoesOnOnAMac(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]string{
		"Darwin": "go test|go run|git status|git rev-parse|go build|ci begins|make check-fast|prerequisites |ci |make run|",
		"Linux":  "git status|git rev-parse|go build|ci begins|make check-fast|",
	} {
		for _, red := range []bool{true, false} {
			said, noted, err := runWithFakes(t, system, red)
			wanted := want
			if !red {
				wanted = strings.Replace("go test|go run|git status|git rev-parse|go build|ci begins|make check-fast|"+
					"prerequisites |ci |make run|ci passed|", "go test|go run|", map[string]string{
					"Darwin": "go test|go run|", "Linux": "",
				}[system], 1)
			}
			if noted != wanted || (err != nil) != red {
				t.Errorf("%s, red %t: %v\ngot  %s\nwant %s\n%s", system, red, err, noted, wanted, said)
			}
		}
	}
}

func runWithFakes(t *testing.T, system string, red bool) (said, noted string, err error) {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	write := func(path, body string) {
		path = filepath.Join(dir, path)
		harness.MakeDir(t, filepath.Dir(path))
		harness.WriteProgram(t, path, body)
	}
	status := "exit 0\n"
	if red {
		status = "exit 1\n"
	}
	fake := func(path, always string) {
		write(path, "#!/bin/sh\n[ \"$1\" = env ] && exit 0\nprintf '%s %s|' \"${0##*/}\" \"$1\" >>"+calls+
			"\n[ \"$1\" = "+always+" ] && exit 0\n"+status)
	}
	write("fakes/uname", "#!/bin/sh\necho "+system+"\n")
	fake("fakes/git", `"$1"`)
	fake("fakes/go", "build")
	fake("fakes/make", "none")
	fake("bin/ci", "begins")
	fake("tests/prerequisites", "none")
	write(".ci/run", read(t, "../../.ci/run"))
	command := exec.CommandContext(t.Context(), filepath.Join(dir, ".ci/run"))
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); name != "SIDECAR_MISSING" && name != toTheEnd && name != "PATH" {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "PATH="+filepath.Join(dir, "fakes")+":"+os.Getenv("PATH"))
	printed, err := command.CombinedOutput()
	return string(printed), read(t, calls), err
}

// toTheEnd is the variable by which .ci/run goes on; tests/ci reads it.
const toTheEnd = "SIDECAR_TO_THE_END"
