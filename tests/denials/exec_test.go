//go:build linux

package denials

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// execute prepares a command of the sidecar in the world, under settings.
func (s *scene) execute(settings string, args ...string) *exec.Cmd {
	s.T.Helper()
	harness.Write(s.T, s.UserSettings(), settings)
	command := exec.Command(harness.Binary(s.T), args...)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	return command
}

// After the command, exec lists what was refused and what would allow it. If
// nothing was refused, it prints nothing.
func TestExecSumsUpWhatWasRefused(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.OutsidePath("file"), "")
	key := filepath.Join(s.Home, ".ssh", "id")
	harness.Write(t, key, "")
	line := fmt.Sprintf("for i in 1 2 3; do echo >%s; done; mkdir %s; echo >%s; true", s.OutsidePath("file"),
		s.OutsidePath("dir"), key)
	out, err := s.execute(harness.Settings(nil), "exec", "--", "sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	_, summary, _ := strings.Cut(harness.Unfold(string(out)), "refused by the sandbox:\n")
	want := fmt.Sprintf(`sandbox-sidecar:   write %q by "sh", 3 times
sandbox-sidecar:     to allow it: add %q to "additional_read_write_paths" (sandbox-sidecar allow 1)
sandbox-sidecar:   create %q by "mkdir"
sandbox-sidecar:     to allow it: add %q to "additional_read_write_paths" (sandbox-sidecar allow 2)
sandbox-sidecar:   write %q by "sh"
sandbox-sidecar:     careful: SSH keys are stored there, so no setting is suggested
`, s.OutsidePath("file"), s.OutsidePath("file"), s.OutsidePath("dir"), s.Outside, key)
	if summary != want {
		t.Errorf("got\n%s\nwant\n%s", summary, want)
	}
	for name, command := range map[string]*exec.Cmd{
		"nothing refused": s.execute(harness.Settings(nil), "exec", "--", "true"),
		"ignored": s.execute(harness.Settings(harness.Sandbox{"on_denied": "ignore"}), "exec", "--", "sh", "-c",
			line),
	} {
		if out, _ := command.CombinedOutput(); strings.Contains(string(out), "sandbox-sidecar:") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// In the user's own terminal exec asks, and follows the answer.
func TestExecAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	requireReports(t)
	ask := harness.Sandbox{"on_denied": "ask"}
	for name, test := range map[string]struct {
		typed  string
		opens  bool
		writes bool
	}{
		"once": {"once\n", true, false}, "no": {"deny\n", false, false}, "nothing": {"\n", false, false},
		"for good": {"project\n", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			harness.Write(t, s.OutsidePath("file"), "the content\n")
			command := s.execute(harness.Settings(ask), "exec", "--", "cat", s.OutsidePath("file"))
			terminal := harness.StartTerminal(t, command)
			terminal.Await(`"cat" wants to read(\x1b\[K)?\s+"[^"]*outside/file"`)
			terminal.Await(prompt)
			terminal.Type(test.typed)
			status := terminal.Status()
			opened := strings.Contains(terminal.Screen.String(), "the content")
			written := strings.Contains(harness.Read(t, filepath.Join(s.Project, ".zed", "settings.json")),
				s.OutsidePath("file"))
			if (status == 0) != test.opens || opened != test.opens || written != test.writes {
				t.Errorf("status %d, opened %t, written %t:\n%s", status, opened, written, terminal.Screen)
			}
		})
	}
	// Without a terminal exec cannot ask, and denies.
	s := newScene(t)
	harness.Write(t, s.OutsidePath("file"), "the content\n")
	command := s.execute(harness.Settings(ask), "exec", "--", "cat", s.OutsidePath("file"))
	command.SysProcAttr = detached()
	if out, err := command.CombinedOutput(); err == nil || strings.Contains(string(out), "the content") ||
		!strings.Contains(harness.Unfold(string(out)), "to allow it: add") {
		t.Errorf("%v: %s", err, out)
	}
}
