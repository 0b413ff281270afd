package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// step is a part of the CI job. It runs whatever became of the others.
type step struct {
	name string
	// finds says what only this step can find.
	finds string
	// minutes is how long it may take in the job.
	minutes int
	command []string
	// env are variables beside the job's own.
	env []string
	// expected is what its result is compared with. A step has exactly one.
	expected expectation
}

// expectation is a golden file, or the name of what is expected.
type expectation struct {
	// tests is a list of tests that must pass; any other that fails is a
	// difference too.
	tests string
	// table is a golden table that the command itself compares with.
	table string
	// success means that the command succeeds.
	success bool
}

const testdata = "tests/macos/testdata/"

// steps are the job's, in their order. What takes longest comes last.
var steps = []step{
	{
		name: "abi", minutes: 20,
		finds: "whether libSystem's functions are called correctly, and a session confined, recognised and ended",
		command: []string{
			"go", "test", "-json", "-count=1", "-timeout", "15m", "-skip", "^TestEvidence_", "./lifecycle/...",
			"./platform/darwin",
		},
		expected: expectation{tests: testdata + "abi.txt"},
	},
	{
		name: "rules", minutes: 15,
		finds: "which rules of the golden profiles compile, each alone and after those before it",
		command: []string{
			"go", "test", "-json", "-count=1", "-timeout", "12m", "-run",
			"^TestEvidence_(Every|Outcomes|Profiles|Tries)", "./platform/darwin",
		},
		expected: expectation{tests: testdata + "rules.txt"},
	},
	{
		name: "answers", minutes: 15,
		finds: "where the kernel answers otherwise than the evaluator",
		command: []string{
			"go", "test", "-json", "-count=1", "-timeout", "12m", "-run", "^TestEvidence_The", "./platform/darwin",
		},
		expected: expectation{tests: testdata + "answers.txt"},
	},
	{
		name: "story", minutes: 60,
		finds:    "which commands work in sessions by default and with each toolchain, and what they reach",
		command:  []string{"bin/macos", "story", testdata + "story.txt"},
		expected: expectation{table: testdata + "story.txt"},
	},
	{
		name: "neovim", minutes: 45,
		finds:    "which tests of the Neovim plugin fail",
		command:  []string{"clients/neovim/tests/on-mac"},
		env:      []string{"SIDECAR_EVENTS=1"},
		expected: expectation{tests: testdata + "neovim.txt"},
	},
	{
		name: "vscode", minutes: 50,
		finds:    "which tests of the VS Code extension fail",
		command:  []string{"clients/vscode/tests/on-mac"},
		env:      []string{"SIDECAR_EVENTS=1"},
		expected: expectation{tests: testdata + "vscode.txt"},
	},
	{
		name: "suite", minutes: 100,
		finds: "everything else that a change must pass",
		// Every machine runs this; at night it runs everything.
		command: []string{
			"bash", "-c", `if [ "${GITHUB_EVENT_NAME:-}" = schedule ]; then make test-all; else .ci/run; fi`,
		},
		expected: expectation{success: true},
	},
	{
		name: "records", minutes: 15,
		finds:    "what the machine says of itself and of the steps before: logs, crash reports, doctor",
		command:  []string{"bin/macos", "records", testdata + "records.txt"},
		expected: expectation{table: testdata + "records.txt"},
	},
}

// run runs a step below the current directory, which is the module's, and
// compares. Its whole output goes to NAME.txt in dir.
func (s step) run(ctx context.Context, dir string, out io.Writer) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, s.name+".txt"))
	if err != nil {
		return err
	}
	var printed bytes.Buffer
	command := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	command.Env = append(append(os.Environ(), "SIDECAR_EVIDENCE="+dir), s.env...)
	// A step at its limit still writes what it has found.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	all := io.MultiWriter(file, &printed)
	if s.expected.tests == "" { // events are for programs
		all = io.MultiWriter(file, out)
	}
	command.Stdout, command.Stderr = all, all
	ended := command.Run()
	if err := file.Close(); err != nil {
		return err
	}
	if s.expected.tests == "" {
		if ended != nil {
			return fmt.Errorf("%s: %w", s.name, ended)
		}
		return nil
	}
	golden, err := os.ReadFile(s.expected.tests)
	if err != nil {
		return err
	}
	rows := judgeTests(tableLines(string(golden)), &printed)
	err = writeRows(rows, filepath.Join(dir, s.name+".tsv"), out)
	if ended != nil && err == nil { // as what does not compile
		err = fmt.Errorf("every test that ran has passed, but: %w", ended)
	}
	if err != nil {
		fmt.Fprintln(out, lastLines(printed.String()))
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// lastLines are the end of a text for people.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
