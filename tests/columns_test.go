package tests

import (
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// answers are command lines whose answers are for people.
var answers = []string{
	"--help", "help", "help nonsense", "nonsense", "exec --help", "learn --help", "policy --help", "explain --help",
	"trust --help", "untrust --help", "cache --help", "doctor --help", "schema --help", "serve --help", "init --help",
	"completion --help", "man --help", "version --help", "exec --no-such-flag", "exec", "--version", "doctor", "policy",
	"policy --kind tool", "policy --kind robot", "explain read ~/.ssh", "explain write /etc/passwd",
	"explain connect h:1",
	"explain read", "trust --show", "trust", "untrust", "cache", "exec -- no-such-program", "exec -- cat /etc/shadow",
	"exec -- touch ../outside/file", "learn -- touch ../outside/file", "completion csh",
	"agent --help", "agent nonsense", "policy --agent claude", "agent codex",
	"init", "init --yes --settings new.json", "exec --sandbox -- cat /etc/shadow", "exec --sandbox -- ls /root",
}

// Every answer fits 80 columns, through a pipe and on a terminal. Only what
// stands in quotation marks, such as a long path, may be wider.
func TestAnswers_FitEightyColumns(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(harness.Sandbox{
		"toolchains": []string{"go", "node"}, "additional_read_only_paths": []string{"/no/such", "~/.ssh"},
		"on_deny": 1,
	}))
	for _, line := range answers {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(harness.Binary(t), strings.Fields(line)...)
			command.Dir, command.Env = w.Project, harness.Environ(w)
			out, _ := command.CombinedOutput() // the exit statuses are other tests'
			if len(out) == 0 {
				t.Error("prints nothing")
			}
			for text := range strings.SplitSeq(string(out), "\n") {
				words := strings.TrimSpace(quotation.ReplaceAllString(text, "Q"))
				if uniseg.StringWidth(text) > 80 && strings.Contains(words, " ") && !sized.MatchString(words) {
					t.Errorf("%d columns: %q", uniseg.StringWidth(text), text)
				}
			}
			if strings.Contains(string(out), "\x1b") {
				t.Errorf("an escape sequence in a pipe: %q", out)
			}
		})
	}
}

// sized is a row of the table that cache prints: a path with its size before it.
var sized = regexp.MustCompile(`^[\d.]+ MB +Q$`)

var quotation = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// On a terminal the warning that nothing is sandboxed is yellow, unless the user
// wants no colours or the terminal has none.
func TestAnswers_RespectNO_COLOR(t *testing.T) {
	t.Parallel()
	for variable, colours := range map[string]bool{
		"NO_COLOR=1": false, "NO_COLOR=": true, "TERM=dumb": false, "TERM=": false, "OTHER=": true,
	} {
		w := harness.NewWorld(t)
		command := exec.Command(harness.Binary(t), "exec", "--", "true")
		command.Dir, command.Env = w.Project, append(harness.Environ(w), "TERM=xterm", variable)
		p := harness.StartTerminal(t, command)
		if status := p.Status(); status != 0 {
			t.Errorf("%s: exit status %d", variable, status)
		}
		if screen := p.Screen.String(); strings.Contains(screen, "\x1b[33m") != colours ||
			!strings.Contains(screen, "not sandboxed") {
			t.Errorf("%s: %q", variable, screen)
		}
	}
}

// Without arguments an editor's sidecar serves, and a person's prints the usage.
func TestNoArguments_ServeAPipeAndHelpAPerson(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	command := exec.Command(harness.Binary(t))
	command.Env = harness.Environ(w)
	p := harness.StartTerminal(t, command)
	if status := p.Status(); status != 2 || !strings.Contains(p.Screen.String(), "usage: sandbox-sidecar COMMAND") {
		t.Errorf("on a terminal: exit status %d, %q", status, p.Screen)
	}
	command = exec.Command(harness.Binary(t))
	command.Env = harness.Environ(w)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	const nonsense = `{"jsonrpc":"2.0","id":1,"method":"nonsense"}`
	_, err = io.WriteString(in, "Content-Length: 44\r\n\r\n"+nonsense)
	header := make([]byte, len("Content-Length"))
	if _, readErr := io.ReadFull(out, header); err != nil || readErr != nil || string(header) != "Content-Length" {
		t.Errorf("through a pipe: %v, %v, %q", err, readErr, header)
	}
	in.Close()
	_, _ = io.Copy(io.Discard, out)
	_ = command.Wait()
}

func TestExplain_CheckHasAnExitStatus(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	for line, want := range map[string]int{
		"--check read .": 0, "read ../outside": 0, "--check read ../outside": 1, "--json --check read ../outside": 1,
		"--check chew .": 2, "--check connect example.org:443": 0,
	} {
		command := exec.Command(harness.Binary(t), append([]string{"explain"}, strings.Fields(line)...)...)
		command.Dir, command.Env = w.Project, harness.Environ(w)
		out, _ := command.CombinedOutput()
		if status := command.ProcessState.ExitCode(); status != want || len(out) == 0 {
			t.Errorf("%s: exit status %d, want %d: %s", line, status, want, out)
		}
	}
}
