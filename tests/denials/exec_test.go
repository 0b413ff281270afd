//go:build linux

package denials

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// execute prepares the sidecar's exec in the world, under settings.
func (s *scene) execute(settings string, args ...string) *exec.Cmd {
	s.t.Helper()
	harness.Write(s.t, s.UserSettings(), settings)
	command := exec.Command(harness.Binary(s.t), args...)
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	return command
}

// Behind the command stands what it was refused, with what would allow it; and
// nothing where it was refused nothing.
func TestExecSumsUpWhatWasRefused(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	harness.Write(t, s.outside("file"), "")
	key := filepath.Join(s.Home, ".ssh", "id")
	harness.Write(t, key, "")
	line := fmt.Sprintf("for i in 1 2 3; do echo >%s; done; mkdir %s; echo >%s; true", s.outside("file"),
		s.outside("dir"), key)
	out, err := s.execute(harness.Settings(nil), "exec", "--", "sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	_, summary, _ := strings.Cut(string(out), "refused by the sandbox:\n")
	want := fmt.Sprintf(`sandbox-sidecar:   write %q by "sh", 3 times
sandbox-sidecar:     to allow it: add %q to "additional_read_write_paths"
sandbox-sidecar:   create %q by "mkdir"
sandbox-sidecar:     to allow it: add %q to "additional_read_write_paths"
sandbox-sidecar:   write %q by "sh"
sandbox-sidecar:     note: think twice: that is SSH keys
`, s.outside("file"), s.outside("file"), s.outside("dir"), s.Outside, key)
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

// In the user's own terminal the question stands there, and the answer counts.
func TestExecAsksOnTheTerminal(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	observedAtAll := newScene(t)
	observed(t, observedAtAll.start(harness.Settings(nil), nil))
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
			harness.Write(t, s.outside("file"), "the content\n")
			command := s.execute(harness.Settings(ask), "exec", "--", "cat", s.outside("file"))
			terminal, err := pty.Start(command)
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			screen := &harness.Buffer{}
			read := make(chan struct{})
			go func() {
				defer close(read)
				_, _ = io.Copy(screen, terminal) // ends with EIO
			}()
			screen.Await(t, `"cat" wants to read "[^"]*outside/file"`)
			screen.Await(t, prompt)
			if _, err := io.WriteString(terminal, test.typed); err != nil {
				t.Fatal(err)
			}
			err = command.Wait()
			<-read
			opened := strings.Contains(screen.String(), "the content")
			written := strings.Contains(harness.Read(t, filepath.Join(s.Project, ".zed", "settings.json")), s.outside("file"))
			if (err == nil) != test.opens || opened != test.opens || written != test.writes {
				t.Errorf("%v, opened %t, written %t:\n%s", err, opened, written, screen)
			}
		})
	}
	// Without a terminal nobody can be asked, and it is refused.
	s := newScene(t)
	harness.Write(t, s.outside("file"), "the content\n")
	command := s.execute(harness.Settings(ask), "exec", "--", "cat", s.outside("file"))
	command.SysProcAttr = detached()
	if out, err := command.CombinedOutput(); err == nil || strings.Contains(string(out), "the content") ||
		!strings.Contains(string(out), "to allow it: add") {
		t.Errorf("%v: %s", err, out)
	}
}
