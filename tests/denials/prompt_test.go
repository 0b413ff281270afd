//go:build linux

package denials

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// shell is an interactive bash that exec has started on a terminal. Its prompt ends
// in "at> ".
type shell struct {
	*harness.Terminal
	t     *testing.T
	typed int // commands
}

func (s *scene) shell(t *testing.T, prompt string) *shell {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		harness.Skip(t, "bash", "it is not installed")
	}
	command := s.command("exec", "--", "bash", "--norc")
	command.Env = append(command.Env, "TERM=dumb")
	sh := &shell{Terminal: harness.StartTerminal(t, command), t: t}
	sh.run("PS1=" + prompt)
	return sh
}

// run types a command, and returns what is on the screen up to the next prompt.
func (sh *shell) run(command string) string {
	sh.t.Helper()
	before := sh.Screen.Len()
	sh.typed++
	// The echo of what is typed does not match.
	sh.Type(fmt.Sprintf("%s; echo 'do''ne' %d\n", command, sh.typed))
	sh.Await(fmt.Sprintf(`(?s)\ndone %d\r?\n.*at> $`, sh.typed))
	return harness.Unfold(sh.Screen.String()[before:])
}

// What was refused since the last prompt is said before the next one, once, whatever
// the prompt looks like and however narrow the terminal is.
func TestPrompt_SaysWhatWasRefused(t *testing.T) {
	t.Parallel()
	requireReports(t)
	for name, prompt := range map[string]string{
		"plain":         `'at> '`,
		"two lines":     `'\n[\w]\nat> '`,
		"right-aligned": `'\[\e7\e[60Cright\e8\]at> '`,
		"narrow":        `'at> '; stty cols 20`,
		"kept":          `'at> '; PROMPT_COMMAND="$PROMPT_COMMAND"$'\n''true'`,
		"on a line":     `'at> '; PROMPT_COMMAND="$PROMPT_COMMAND; true"`,
		"if there":      `'at> '; PROMPT_COMMAND="${PROMPT_COMMAND:+$PROMPT_COMMAND; }true"`,
	} {
		s := newScene(t)
		harness.Write(t, s.UserSettings(), harness.Settings(nil))
		path := s.OutsidePath("notes")
		sh := s.shell(t, prompt)
		if screen := sh.run("true"); strings.Contains(screen, "refused:") || strings.Contains(screen, "syntax error") {
			t.Errorf("%s: control: nothing was refused:\n%s", name, screen)
		}
		_, told, _ := strings.Cut(sh.run("mkdir "+path), "done 3")
		if !strings.Contains(told, `refused: create "`+path+`" by "mkdir"`) {
			t.Errorf("%s: it is not said before the prompt:\n%s", name, told)
		}
		// Its number may come just while the shell empties the file: then it is said
		// once more, with its step.
		if screen := sh.run("true"); strings.Contains(screen, "refused:") {
			if again := sh.run("true"); strings.Contains(again, "refused:") {
				t.Errorf("%s: it is said again and again:\n%s%s", name, screen, again)
			}
		}
		// The number may come late on a busy machine.
		harness.Eventually(t, "the step is named: "+name, func() bool {
			screen := sh.run("mkdir " + path)
			if !strings.Contains(screen, "refused:") {
				t.Errorf("%s: the next time is not said:\n%s", name, screen)
			}
			return strings.Contains(screen, "(to allow it, outside: `sandbox-sidecar allow ")
		})
		sh.Type("exit\n")
		sh.Status()
		s.says(0, `create "`+path+`" by "mkdir"`, "allow")
	}
}

// A program that uses the screen is not disturbed, and a flood is three lines.
func TestPrompt_WaitsForProgramsAndBoundsFloods(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	path := s.OutsidePath("notes")
	sh := s.shell(t, `'at> '`)
	sh.Type("sh -c 'mkdir " + path + "; echo dra''wing; read line'\n")
	sh.Await(`\ndrawing\r?\n`)
	if strings.Contains(sh.Screen.String(), "refused:") {
		t.Errorf("it is said while a program runs:\n%s", sh.Screen)
	}
	sh.Type("\n")
	sh.Await(`(?s)refused: create\s.*at> $`)
	screen := sh.run("for i in $(seq 40); do mkdir " + path + "$i; done")
	if strings.Count(screen, "refused: create") != 3 || !strings.Contains(screen, "and 37 more refused") {
		t.Errorf("a flood is told as:\n%s", screen)
	}
}

// What a session puts in the place of the file leads the sidecar nowhere, and
// commands that nobody types get nothing of it.
func TestPrompt_TheFileIsNoWayOut(t *testing.T) {
	t.Parallel()
	requireReports(t)
	s := newScene(t)
	harness.Write(t, s.UserSettings(), harness.Settings(nil))
	victim := s.OutsidePath("victim")
	harness.Write(t, victim, "as it was")
	sh := s.shell(t, `'at> '`)
	if screen := sh.run("mkdir " + s.OutsidePath("a")); !strings.Contains(screen, "refused:") {
		t.Fatalf("control: nothing is said:\n%s", screen)
	}
	sh.run("ln -sf " + victim + ` "$SANDBOX_REFUSED"`)
	sh.run("mkdir " + s.OutsidePath("b"))
	if text := harness.Read(t, victim); text != "as it was" {
		harness.Breach(t, "the sidecar wrote outside: %q", text)
	}
	sh.Type("exit\n")
	sh.Status()
	s.says(0, "[]", "exec", "--", "bash", "-c", `echo "[$SANDBOX_REFUSED$PROMPT_COMMAND]"`)
}

// A client without a place of its own for refusals, such as that of "make run", has
// them in the shell if it asks for that, and only then.
func TestPrompt_IsForClientsThatWantIt(t *testing.T) {
	t.Parallel()
	requireReports(t)
	if _, err := exec.LookPath("bash"); err != nil {
		harness.Skip(t, "bash", "it is not installed")
	}
	for _, wanted := range []bool{true, false} {
		s := newScene(t)
		e := harness.Start(t, s.World, harness.Options{Initialize: func(p *protocol.InitializeParams) {
			p.Capabilities.PromptLines = wanted
		}})
		session := e.Spawn(protocol.SpawnParams{Shell: &protocol.Shell{Program: "bash", Args: []string{"--norc"}}})
		session.Type("PS1='at> '\nmkdir " + s.OutsidePath("a") + "; echo 'do''ne'\n")
		session.Await(`(?s)\ndone\r?\n.*at> `)
		if told := strings.Contains(harness.Unfold(session.Output()), "refused: create "); told != wanted {
			t.Errorf("wanted %t, said %t:\n%s", wanted, told, session.Output())
		}
		session.Close(0)
	}
}
