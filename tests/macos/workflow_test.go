package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/golden"
)

var update = flag.Bool("update", false, "write .github/workflows/macos.yml again")

const workflowFile = "../../.github/workflows/macos.yml"

func TestWorkflow_IsTheTables(t *testing.T) {
	t.Parallel()
	golden.Compare(t, *update, workflowFile, workflow())
	if text := read(t, "../../.github/workflows/ci.yml"); !strings.Contains(text, "\n"+callers()) {
		t.Errorf("ci.yml does not hold these jobs:\n%s", callers())
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jobStep is a step as the workflow has it.
type jobStep struct{ name, text string }

// jobSteps are the steps of a workflow with one job. A step begins with a name.
func jobSteps(text string) []jobStep {
	_, text, _ = strings.Cut(text, "\n    steps:\n")
	var all []jobStep
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "      #"):
		case strings.HasPrefix(line, "      - "):
			name, _ := strings.CutPrefix(line, "      - name: ")
			all = append(all, jobStep{strings.TrimSpace(name), line})
		case len(all) > 0:
			all[len(all)-1].text += line
		}
	}
	return all
}

func (s jobStep) value(key string) string {
	found := regexp.MustCompile(`(?m)^\s+` + key + `: (.*)$`).FindStringSubmatch(s.text)
	if found == nil {
		return ""
	}
	return strings.Trim(found[1], "'")
}

// ours is how a job's step runs one of package's steps.
var ours = regexp.MustCompile(`^bin/macos step ([a-z]+)$`)

// shapeless lists what is wrong with the shape of a workflow: one run must find
// everything, and lose nothing.
func shapeless(text string) []string {
	var faults []string
	say := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	all := jobSteps(text)
	if len(all) == 0 {
		return []string{"there is no step"}
	}
	for _, key := range []string{"continue-on-error", "needs:"} {
		if strings.Contains(text, key) {
			say("%s hides or skips something", key)
		}
	}
	for _, line := range []string{
		"      fail-fast: false\n", "        os: ${{ fromJSON(inputs.machines) }}\n", "    runs-on: ${{ matrix.os }}\n",
		"        tools: [Xcode, CommandLineTools]\n",
	} {
		if !strings.Contains(text, line) {
			say("%s is missing", strings.TrimSpace(line))
		}
	}
	minutes, seen := 0, map[string]int{}
	for _, s := range all {
		if condition := s.value("if"); condition != notCancelled && condition != always {
			say("%s: its condition is %q", s.name, condition)
		}
		if found := ours.FindStringSubmatch(s.value("run")); found != nil {
			seen[found[1]]++
			limit, err := strconv.Atoi(s.value("timeout-minutes"))
			if err != nil || limit <= 0 {
				say("%s: no time limit, so it can take that of all", s.name)
			}
			minutes += limit
		} else if s.value("run") != "" && len(seen) > 0 {
			say("%s: runs what has no golden", s.name)
		}
	}
	for _, s := range steps {
		if seen[s.name] != 1 {
			say("the step %s is there %d times", s.name, seen[s.name])
		}
	}
	if len(seen) != len(steps) {
		say("%d steps of %d are known", len(steps), len(seen))
	}
	if minutes > jobMinutes-30 {
		say("the steps may take %d minutes of %d: nothing is left for the upload", minutes, jobMinutes)
	}
	last := all[len(all)-1]
	if !strings.HasPrefix(last.value("uses"), "actions/upload-artifact@") || last.value("if") != always ||
		last.value("if-no-files-found") != "error" ||
		!strings.Contains(text, "SIDECAR_EVIDENCE: "+last.value("path")+"\n") {
		say("the last step does not always upload the evidence")
	}
	if before := all[len(all)-2]; before.value("if") != always || before.name != "records" {
		say("what the machine says of the steps is not always written last")
	}
	return faults
}

func TestWorkflow_FindsEverythingAndLosesNothing(t *testing.T) {
	t.Parallel()
	text := read(t, workflowFile)
	for _, fault := range shapeless(text) {
		t.Error(fault)
	}
	const run, goes = "\n        run: ", "\n        if: " + notCancelled
	for _, mutation := range []struct{ name, old, by, fault string }{
		{"a step without a condition", "- name: rules" + goes, "- name: rules", `rules: its condition is ""`},
		{"a step that needs others", "story" + goes, "story\n        if: success()", "story: its condition"},
		{"no golden", "- name: rules", "- name: x" + goes + run + "x\n      - name: rules", "x: runs what has no"},
		{"a step that is left out", "step suite", "step story", "suite is there 0 times"},
		{"an unknown step", "step suite", "step suit", "suite is there 0 times"},
		{"a step without a limit", "\n        timeout-minutes: 60", "", "story: no time limit"},
		{"steps that leave no time", "timeout-minutes: 100", "timeout-minutes: 300", "nothing is left"},
		{"a failure that is hidden", run + "bin", "\n        continue-on-error: true" + run + "bin", "hides"},
		{"machines that end others", "fail-fast: false", "fail-fast: true", "fail-fast"},
		{"one kind of developer tools", "[Xcode, CommandLineTools]", "[Xcode]", "tools"},
		{"an upload after success", "upload\n        if: " + always, "upload\n        if: success()", "always upload"},
		{"an upload of something else", "path: bin/evidence", "path: bin/other", "always upload"},
		{"an upload of nothing", "if-no-files-found: error", "if-no-files-found: ignore", "always upload"},
		{"no upload", "actions/upload-artifact@v4", "actions/checkout@v4", "always upload"},
	} {
		changed := strings.Replace(text, mutation.old, mutation.by, 1)
		if changed == text {
			t.Errorf("%s: nothing was changed", mutation.name)
		} else if faults := strings.Join(shapeless(changed), "; "); !strings.Contains(faults, mutation.fault) {
			t.Errorf("%s: found %q", mutation.name, faults)
		}
	}
}

// The machines that GitHub lends for nothing, of each version and processor.
func TestWorkflow_HasEveryMachine(t *testing.T) {
	t.Parallel()
	want := []string{"macos-14", "macos-15", "macos-15-intel", "macos-26", "macos-26-intel"}
	if got := slices.Sorted(slices.Values(slices.Concat(machines, ending))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(tools) != 2 {
		t.Errorf("developer tools: %v", tools)
	}
}

// Every command of the workflow is one that a shell can read.
func TestWorkflow_ShellsReadItsCommands(t *testing.T) {
	t.Parallel()
	commands := []string{"if true; then"} // must fail
	for _, s := range jobSteps(read(t, workflowFile)) {
		if command := s.value("run"); command != "" {
			commands = append(commands, command)
		}
	}
	for i, command := range commands {
		if out, err := exec.Command("bash", "-n", "-c", command).CombinedOutput(); (err == nil) != (i > 0) {
			t.Errorf("%q: %v\n%s", command, err, out)
		}
	}
}

// No step is without something that its result is compared with.
func TestSteps_HaveAGoldenOrANamedExpectation(t *testing.T) {
	t.Parallel()
	for _, s := range steps {
		expected := 0
		for _, file := range []string{s.expected.tests, s.expected.table} {
			if file == "" {
				continue
			}
			expected++
			if lines := tableLines(read(t, "../../"+file)); len(lines) == 0 {
				t.Errorf("%s: %s is empty", s.name, file)
			}
			if file == s.expected.table && !slices.Contains(s.command, file) {
				t.Errorf("%s: its command does not compare with %s", s.name, file)
			}
		}
		if s.expected.success {
			expected++
		}
		if expected != 1 || s.finds == "" || s.minutes == 0 || len(s.command) == 0 {
			t.Errorf("%s: %d expectations; %+v", s.name, expected, s)
		}
		if program := s.command[0]; strings.Contains(program, "/") && !strings.HasPrefix(program, "bin/") {
			if info, err := os.Stat("../../" + program); err != nil || info.Mode().Perm()&0o100 == 0 {
				t.Errorf("%s: %s cannot be executed: %v", s.name, program, err)
			}
		}
	}
}
