package denials

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestTrust_AsksInAnyMode asks on a terminal that a session has left in a mode in
// which programs read keys, and without a terminal.
func TestTrust_AsksInAnyMode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode    string // of stty
		typed   string
		trusted bool
	}{
		"raw, yes":              {"raw -echo", "yes\r", true}, // a key in raw mode
		"raw, no":               {"raw -echo", "\r", false},
		"keys, yes":             {"-icanon -echo", "yes\n", true},
		"keys, the end":         {"-icanon min 0 time 0", "\x04", false},
		"canonical":             {"sane", "yes\n", true},
		"what was typed before": {"sane", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			harness.Write(t, filepath.Join(s.Project, ".zed", "settings.json"),
				harness.Settings(requestsOf(hostile[2])))
			command := s.execute(harness.Settings(nil), "trust")
			before := "IFS= read -r line"
			if test.typed != "" {
				before = "true"
			}
			script := `stty ` + test.mode + `; before=$(stty -g); ` + before + `; "$0" "$@"; status=$?
				[ "$(stty -g)" = "$before" ] || echo "another mode"; stty sane; echo "ended $status"`
			shell := exec.Command("/bin/sh", append([]string{"-c", script}, command.Args...)...)
			shell.Dir, shell.Env = command.Dir, command.Env
			terminal := harness.StartTerminal(t, shell)
			if test.typed == "" {
				terminal.Type("x\nyes\n") // the shell reads the first line alone
			}
			terminal.Await(`press Enter to leave them untrusted: `)
			if test.typed == "" {
				terminal.Type("\n")
			} else {
				terminal.Type(test.typed)
			}
			terminal.Await("ended ")
			terminal.Status()
			text := terminal.Screen.String()
			if strings.Contains(text, "ended 0") != test.trusted || strings.Contains(text, "another mode") {
				t.Errorf("%s", text)
			}
			if s.trusts(t) != test.trusted {
				harness.Breach(t, "trusted: %t: %s", !test.trusted, text)
			}
		})
	}
}

// trusts reports whether the project is in the list of trusted ones.
func (s *scene) trusts(t *testing.T) bool {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(s.Home, ".local", "state", "sandbox-sidecar", "trust.json"))
	harness.Must(t, err)
	return len(list) == 1 && strings.Contains(harness.Read(t, list[0]), s.Project)
}

func TestTrust_WithoutATerminalNeedsTheDigest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	file := filepath.Join(s.Project, ".zed", "settings.json")
	harness.Write(t, file, harness.Settings(requestsOf(hostile[2])))
	out, err := s.execute(harness.Settings(nil), "trust").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--digest") || s.trusts(t) {
		harness.Breach(t, "nobody was asked: %v: %s", err, out)
	}
	out, err = s.execute(harness.Settings(nil), "trust", "--digest", harness.Digest(t, file)).CombinedOutput()
	if err != nil || !s.trusts(t) {
		t.Errorf("control: %v: %s", err, out)
	}
}

// No command that writes a project's file trusts what the user has not seen in it,
// whatever it would be under the command's own settings.
func TestTrust_IsGivenByNoOtherCommand(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const off = `{"terminal":{"sandbox":{"enabled":false}}}`
	const wide = `{"terminal":{"sandbox":{"additional_read_only_paths":["/"]}}}`
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	file := filepath.Join(s.Project, ".zed", "settings.json")
	secret := s.OutsidePath("secret")
	harness.Write(t, secret, "the content\n")
	wanted := s.OutsidePath("wanted")
	harness.Write(t, wanted, "")
	closed := func(after string) {
		t.Helper()
		out, status := s.run("exec", "--", "cat", secret)
		shown, _ := s.run("trust", "--show")
		if status == 0 || strings.Contains(out, "the content") || s.trusts(t) ||
			!strings.Contains(shown, "is not trusted") {
			harness.Breach(t, "after %s: status %d: %s%s", after, status, out, shown)
		}
	}
	harness.Write(t, file, off)
	s.says(1, "writing it would trust it all: see `sandbox-sidecar trust`, then again",
		"allow", "--in-project", "--yes", wanted)
	if harness.Read(t, file) != off {
		t.Errorf("written: %s", harness.Read(t, file))
	}
	closed("allow")
	// With the sandbox of a command line, what the file asks for looks like nothing.
	s.says(1, "writing it would trust", "allow", "--settings", s.UserSettings(), "--in-project", "--yes", wanted)
	closed("allow with settings")

	harness.Write(t, file, wide)
	s.says(0, "changed", "init", "--yes", "--settings", file)
	closed("init")
	harness.Must(t, os.Remove(file))
	s.says(0, "", "learn", "-o", file, "--", "cat", secret)
	if !strings.Contains(harness.Read(t, file), s.Outside) {
		t.Errorf("learn has written %s", harness.Read(t, file))
	}
	closed("learn")

	// The control: a file that is new is trusted with its entry. Undo leaves none.
	harness.Must(t, os.Remove(file))
	s.says(0, "Allowed", "allow", "--in-project", "--yes", secret)
	s.says(0, "the content", "exec", "--", "cat", secret)
	s.says(0, "is trusted", "trust", "--show")
	s.says(0, "taken back", "allow", "--undo")
	if out, status := s.run("exec", "--", "cat", secret); status == 0 || s.trusts(t) {
		harness.Breach(t, "after --undo: status %d: %s", status, out)
	}
}
