//go:build unix

package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// hostile puts a program where a project could put one: into the working
// directory, and into a directory of PATH.
func hostile(t *testing.T, w *harness.World) (path string, ran func() bool) {
	t.Helper()
	mark, dir := filepath.Join(w.Outside, "ran"), filepath.Join(w.Project, "tools")
	harness.MakeDir(t, dir)
	for _, place := range []string{w.Project, dir} {
		harness.Write(t, filepath.Join(place, "sandbox-sidecar-mcp"), "#!/bin/sh\ntouch "+harness.Quote(mark)+"\n")
		harness.Must(t, os.Chmod(filepath.Join(place, "sandbox-sidecar-mcp"), 0o755))
	}
	return dir, func() bool {
		_, err := os.Stat(mark)
		return err == nil
	}
}

// Only the program in the sidecar's own directory is run. If that is missing,
// nothing is, and the message says what to install.
func TestMCP_RunsNothingOfPATHOrOfTheProject(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	dir, ran := hostile(t, w)
	env := append(harness.Environ(w), "PATH="+dir+":.:"+os.Getenv("PATH"))
	own := filepath.Join(t.TempDir(), "sandbox-sidecar")
	harness.Victim(t, "cmd/sandbox-sidecar", own)
	command := exec.Command(own, "mcp")
	command.Dir, command.Env = w.Project, env
	text, err := command.CombinedOutput()
	if err == nil || ran() || !strings.Contains(harness.Unfold(string(text)), "there is no sandbox-sidecar-mcp in ") ||
		!strings.Contains(string(text), "go install") {
		t.Errorf("%v, another program ran: %t: %s", err, ran(), text)
	}
	control := exec.Command("sh", "-c", "sandbox-sidecar-mcp")
	control.Dir, control.Env = w.Project, env
	if err := control.Run(); err != nil || !ran() {
		t.Fatalf("control: %v, it ran: %t", err, ran())
	}
}

// A symlink, as in ~/bin, leads to the directory of both programs.
func TestMCP_FollowsASymlinkToItself(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	dir, ran := hostile(t, w)
	link := filepath.Join(dir, "sandbox-sidecar")
	harness.Must(t, os.Symlink(harness.BinaryWithMCP(t), link))
	command := exec.Command(link, "mcp")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	a := converse(t, command)
	answer := a.ask(2, "tools/call", `{"name": "run", "arguments": {"command": "echo in; test -t 1 || echo piped"}}`)
	if !strings.Contains(answer, `in\npiped`) || ran() {
		t.Errorf("the program beside the link ran: %t: %s", ran(), answer)
	}
}

// Wrong flags end the command before it becomes another program, with the usage.
func TestMCP_ChecksItsFlags(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	for _, c := range []struct{ flag, want string }{
		{"--kind=both", `expected "terminal" or "tool"`},
		{"--project=/nowhere", "is not a directory"},
		{"--settings=", "--settings is empty"},
		{"--mode=off", "not defined: --mode"},
		{"--sidecar=/bin/true", "not defined: --sidecar"},
		{"more", "unexpected argument"},
	} {
		command := exec.Command(harness.BinaryWithMCP(t), "mcp", c.flag)
		command.Dir, command.Env = w.Project, harness.Environ(w)
		text, err := command.CombinedOutput()
		if err == nil || command.ProcessState.ExitCode() != 2 ||
			!strings.Contains(harness.Unfold(string(text)), c.want) ||
			!strings.Contains(string(text), "usage: sandbox-sidecar mcp") {
			t.Errorf("%s: %v: %s", c.flag, err, text)
		}
	}
}

// --project and --settings reach the program that serves.
func TestMCP_TakesAProjectAndSettings(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	file := filepath.Join(w.Home, "mine.json")
	harness.Write(t, file, harness.Defaults(harness.Sandbox{"additional_read_write_paths": []string{w.Outside}}))
	command := exec.Command(harness.BinaryWithMCP(t), "mcp", "--project", "project", "--settings", "mine.json")
	command.Dir, command.Env = w.Home, harness.Environ(w)
	if filepath.Dir(w.Project) != w.Home || filepath.Base(w.Project) != "project" {
		command.Args[3] = w.Project
	}
	a := converse(t, command)
	line := "pwd; echo out >" + filepath.Join(w.Outside, "file")
	answer := a.ask(2, "tools/call", `{"name": "run", "arguments": {"command": "`+line+`"}}`)
	if !strings.Contains(answer, w.Project+`\n`) || harness.Read(t, filepath.Join(w.Outside, "file")) != "out\n" {
		t.Error(answer)
	}
}
