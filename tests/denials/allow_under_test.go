//go:build linux

package denials

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// After "Allowed" the same command is not refused the same again, whatever its
// command line says of the sandbox. Of each front door the rows take turns.
func TestAllow_CountsTheCommandLineThatWasRefused(t *testing.T) {
	t.Parallel()
	requireReports(t)
	harness.Require(t, "network_hosts")
	const host = "192.0.2.1:81" // of no machine
	connect := []string{"timeout", "2", "bash", "-c", "exec 3<>/dev/tcp/192.0.2.1/81"}
	const none = ""
	for name, test := range map[string]struct {
		settings string
		flags    []string
		connects bool
		i, n     int // which of how many of its front door
	}{
		"no settings, --sandbox": {none, []string{"exec", "--sandbox", "--"}, false, 0, 3},
		"no settings, --mode":    {none, []string{"exec", "--mode", "standard", "--"}, false, 0, 1},
		"sandbox off, --sandbox": {harness.Off(), []string{"exec", "--sandbox", "--"}, false, 1, 3},
		"for tools, --sandbox": {
			harness.Defaults(harness.Sandbox{"apply_to": "tool"}), []string{"exec", "--sandbox", "--"}, false, 2, 3,
		},
		"an agent":                 {none, []string{"agent", "claude"}, false, 0, 2},
		"an agent, a host":         {harness.Defaults(nil), []string{"agent", "claude"}, true, 1, 2},
		"exec of an agent":         {none, []string{"exec", "--agent", "claude", "--"}, false, 1, 2},
		"exec of an agent, a host": {none, []string{"exec", "--agent", "claude", "--"}, true, 0, 2},
	} {
		if !harness.Turn(t, test.i, test.n) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &scene{harness.NewSceneIn(t, harness.NewWorldOutsideDefaults(t), "")}
			if test.settings != none {
				harness.Write(t, s.UserSettings(), test.settings)
			}
			bin := s.HomePath("bin")
			harness.Write(t, filepath.Join(bin, "claude"), "#!/bin/sh\nexec \"$@\"\n")
			harness.Must(t, os.Chmod(filepath.Join(bin, "claude"), 0o755))
			file, command := s.OutsidePath("file"), connect
			harness.Write(t, file, "the content\n")
			refused, named := `connect "`+host+`"`, host
			if !test.connects {
				command, refused, named = []string{"cat", file}, `read "`+file+`"`, file
			}
			run := func(args ...string) (printed string, status int) {
				t.Helper()
				c := s.command(args...)
				c.Env = append(c.Env, "PATH="+bin+":/usr/bin:/bin")
				c.SysProcAttr = detached()
				return output(t, c)
			}
			again := append(append([]string{}, test.flags...), command...)
			out, _ := run(again...)
			if !strings.Contains(out, refused) || !strings.Contains(out, "(sandbox-sidecar allow 1)") {
				t.Fatalf("not refused, or not offered:\n%s", out)
			}
			if out, _ := run("allow"); !strings.Contains(out, "to allow it: add") {
				t.Errorf("the list does not offer it:\n%s", out)
			}
			if out, status := run("allow", "1", "--yes"); status != 0 || !strings.Contains(out, "Allowed for") {
				t.Fatalf("status %d:\n%s", status, out)
			}
			if out, status := run(again...); strings.Contains(out, refused) ||
				!test.connects && (status != 0 || !strings.Contains(out, "the content")) {
				t.Errorf("refused again, status %d:\n%s", status, out)
			}
			if out, _ := run("allow", "1", "--yes"); !strings.Contains(out, "allowed already") {
				t.Errorf("again:\n%s", out)
			}
			// By its name it is the same refusal, and without one that of a
			// sandboxed session.
			if out, status := run("allow", "--undo"); status != 0 {
				t.Fatalf("status %d:\n%s", status, out)
			}
			if out, status := run("allow", named, "--yes"); status != 0 || !strings.Contains(out, "Allowed for") {
				t.Errorf("by its name: status %d:\n%s", status, out)
			}
			other := s.OutsidePath("other")
			harness.Write(t, other, "")
			if out, status := run("allow", other, "--yes"); status != 0 || !strings.Contains(out, "Allowed for") {
				t.Errorf("what was never refused: status %d:\n%s", status, out)
			}
		})
	}
}

// What a flag decides no entry changes, so the flag is named.
func TestAllow_NamesTheFlagThatDecides(t *testing.T) {
	t.Parallel()
	s, file := newAllowScene(t, harness.Settings(nil))
	const flag = "--mode strict decides, not the settings"
	s.says(1, flag, "exec", "--mode", "strict", "--", "cat", file)
	s.says(0, flag, "allow")
	s.says(0, `read "`+file+`" by "cat" (terminal, --mode strict)`, "allow")
	s.says(0, `read "`+file+`" by "cat" (terminal) `, "allow")
	s.says(1, flag, "allow", "2", "--yes")
	s.says(0, "Allowed", "allow", "1", "--yes") // the control
}

// output runs a command, and returns what it prints and its status.
func output(t testing.TB, command *exec.Cmd) (printed string, status int) {
	t.Helper()
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return harness.Unfold(string(out)), command.ProcessState.ExitCode()
}
