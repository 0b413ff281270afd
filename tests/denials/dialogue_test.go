//go:build linux

package denials

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The questions of exec in the user's own terminal, and what a program can do
// about them.

// prompt is the last line of a question.
const prompt = `type deny, once, session, directory, project or user \(Enter denies\): `

// dialogue is a terminal on which exec runs a shell's line that may lead to
// questions.
type dialogue struct {
	*scene
	*harness.Terminal
	token string // in the command line of the line's shell
}

// startDialogue runs a line under exec. FILE in it is a file that the sandbox
// refuses, with "the content" in it.
func startDialogue(t *testing.T, wrap func(*exec.Cmd), line string) *dialogue {
	t.Helper()
	requireReports(t)
	s := &scene{harness.NewScene(t, "")} // no dialogue needs the victim
	harness.Write(t, s.OutsidePath("file"), "the content\n")
	p := &dialogue{scene: s, token: uuid.NewString()}
	line = strings.ReplaceAll(line, "FILE", s.OutsidePath("file"))
	command := s.execute(harness.Settings(harness.Sandbox{"on_denied": "ask"}), "exec", "--", "sh", "-c", line, p.token)
	command.Env = append(command.Env, "TERM=xterm")
	wrap(command)
	p.Terminal = harness.StartTerminal(t, command)
	return p
}

func (p *dialogue) opened() bool { return strings.Contains(p.Screen.String(), "the content") }

func (p *dialogue) written() bool {
	return strings.Contains(harness.Read(p.T, p.UserSettings()), p.OutsidePath("file")) ||
		strings.Contains(harness.Read(p.T, filepath.Join(p.Project, ".zed", "settings.json")), p.OutsidePath("file"))
}

// The question says what the answer "directory" opens. What waits for the terminal
// meanwhile is answered by it, too.
func TestExec_ADirectoryIsAnAnswer(t *testing.T) {
	t.Parallel()
	p := startDialogue(t, func(*exec.Cmd) {}, `cat FILE & cat FILE2 & wait; cat FILE3; ls "$(dirname FILE)"`)
	harness.Write(t, p.OutsidePath("file2"), "the second\n")
	harness.Write(t, p.OutsidePath("file3"), "the third\n")
	p.Await(`the whole directory: read`)
	p.Await(prompt)
	p.Type("directory\n")
	if status := p.Status(); status != 0 {
		t.Errorf("status %d:\n%s", status, p.Screen)
	}
	for _, want := range []string{"the content", "the second", "the third", "file3"} {
		if !strings.Contains(p.Screen.String(), want) {
			t.Errorf("no %q:\n%s", want, p.Screen)
		}
	}
	if asked := strings.Count(p.Screen.String(), "(Enter denies)"); asked != 1 || p.written() {
		t.Errorf("asked %d times, written %t:\n%s", asked, p.written(), p.Screen)
	}
}

func TestInputTypedBeforeAQuestionIsNoAnswer(t *testing.T) {
	t.Parallel()
	const waits = "stty -echo; echo rea''dy; while ! test -e go; do sleep 0.02; done; cat FILE"
	for name, ahead := range map[string]string{
		"a whole line": "user\n", "several": "user\nuser\nuser\nuser\nuser\n", "a part": "us",
		"a line and a part": "user\nuse",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDialogue(t, func(*exec.Cmd) {}, waits)
			p.Await("ready")
			p.Type(ahead)
			harness.Write(t, filepath.Join(p.Project, "go"), "")
			p.Await(prompt)
			p.Type("er\n") // completes the part
			p.Await("unknown answer")
			p.Await(prompt + `\r?\n?(?s:.*)` + prompt)
			p.Type("deny\n")
			if status := p.Status(); status == 0 || p.opened() || p.written() {
				t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.Screen)
			}
		})
	}
	t.Run("a paste that goes on", func(t *testing.T) {
		t.Parallel()
		// A busy machine may interrupt a paste. Then it is tried again.
		p, torn := pasteIntoQuestion(t, waits)
		for attempt := 1; torn; attempt++ {
			_ = p.Command.Process.Kill()
			p.Status()
			if attempt == 20 {
				t.Fatal("the machine interrupts each paste: this test shows nothing")
			}
			p, torn = pasteIntoQuestion(t, waits)
		}
		p.Await(prompt)
		p.Type("\n")
		if status := p.Status(); status == 0 || p.opened() || p.written() {
			t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.Screen)
		}
	})
}

// pasteIntoQuestion pastes until some time after a question came, for which no
// answer must be asked meanwhile. The paste begins before the question, so that
// no pause between both counts. It reports whether the paste had pauses.
func pasteIntoQuestion(t *testing.T, waits string) (p *dialogue, torn bool) {
	t.Helper()
	p = startDialogue(t, func(*exec.Cmd) {}, waits)
	p.Await("ready")
	last := time.Now()
	paste := func() {
		p.Type("user\n")
		torn = torn || time.Since(last) > 200*time.Millisecond
		last = time.Now()
		time.Sleep(60 * time.Millisecond) // the pace of the paste, not a wait
	}
	paste()
	harness.Write(t, filepath.Join(p.Project, "go"), "")
	for end := deadline.New(harness.Timeout); !strings.Contains(p.Screen.String(), " wants to "); paste() {
		if end.Passed() {
			t.Fatalf("no question:\n%s", p.Screen)
		}
	}
	for range 10 {
		paste()
	}
	asked := strings.Contains(p.Screen.String(), "(Enter denies)")
	torn = torn || time.Since(last) > 200*time.Millisecond
	if asked && !torn {
		t.Errorf("the answer was asked for while it was typed:\n%s", p.Screen)
	}
	return p, torn
}

func TestOnlyAWholeWordIsAnAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		typed []string
		opens bool
	}{
		"letters, thrice":             {[]string{"u\n", "o\n", "s\n"}, false},
		"nearly words":                {[]string{"users\n", "user user\n", "yes\n"}, false},
		"a letter, then a word":       {[]string{"o\n", "once\n"}, true},
		"a word in other letters":     {[]string{" Once \n"}, true},
		"words one behind the other":  {[]string{"once\nuser\n", "\n"}, false},
		"a word, and more is pasted":  {[]string{"session\nrm", "deny\n"}, false},
		"nothing":                     {[]string{"\n"}, false},
		"the end of input":            {[]string{"\x04"}, false},
		"a word, unasked":             {[]string{"no\n", "never\n", "deny\n"}, false},
		"a word that was just erased": {[]string{"user\x15\n"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startDialogue(t, func(*exec.Cmd) {}, "cat FILE")
			seen := ""
			for _, typed := range test.typed {
				seen += "(?s:.*)" + prompt
				p.Await(seen)
				p.Type(typed)
			}
			if status := p.Status(); (status == 0) != test.opens || p.opened() != test.opens || p.written() {
				t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.Screen)
			}
		})
	}
}

// If a file is allowed permanently, exec names the settings file that it has
// changed.
func TestAPermanentAnswerReportsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for i, word := range []string{"user", "project"} { // by turns with TestAPermanentAnswerIsWrittenToSettings
		if !harness.Turn(t, i, 2) {
			continue
		}
		file := map[string]func(p *dialogue) string{
			"user":    func(p *dialogue) string { return p.UserSettings() },
			"project": func(p *dialogue) string { return filepath.Join(p.Project, ".zed", "settings.json") },
		}[word]
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			p := startDialogue(t, func(*exec.Cmd) {}, "cat FILE")
			p.Await(prompt)
			p.Type(word + "\n")
			if status := p.Status(); status != 0 || !p.opened() || !p.written() {
				t.Errorf("status %d, opened %t, written %t", status, p.opened(), p.written())
			}
			// A long path is shortened in its middle.
			for _, want := range []string{
				`outside/file" to "additional_read_only_paths"`,
				filepath.Join(filepath.Base(filepath.Dir(file(p))), "settings.json") + `"`,
			} {
				if !strings.Contains(harness.Unfold(p.Screen.String()), want) {
					t.Errorf("the screen does not say %s:\n%s", want, p.Screen)
				}
			}
		})
	}
}

// withOrWithoutCgroups is harness.WithAndWithoutCgroups in turn: a test and the
// next one by number have the first turn in different ways.
func withOrWithoutCgroups(t *testing.T, number int, run func(t *testing.T, wrap func(*exec.Cmd))) {
	t.Helper()
	if harness.Turn(t, number, 2) {
		t.Run("as it comes", func(t *testing.T) {
			t.Parallel()
			run(t, func(*exec.Cmd) {})
		})
	}
	if harness.Turn(t, number+1, 2) {
		t.Run("without cgroups", func(t *testing.T) {
			t.Parallel()
			run(t, harness.WithoutCgroups(t))
		})
	}
}

// While a question is open, no process of the session writes: neither in the
// background nor outside the terminal's session. Only exec reads the input.
// Afterwards all of them continue.
func TestNothingWritesOverAQuestion(t *testing.T) {
	t.Parallel()
	withOrWithoutCgroups(t, 0, func(t *testing.T, wrap func(*exec.Cmd)) {
		const line = `
paint() { while test -d "$PWD"; do printf "$1"; sleep 0.001; done; }
paint PAINT & 
exec 9>&1; setsid sh -c 'while test -d "$PWD"; do printf OTHER >&9; sleep 0.001; done' &
sh -c 'while read x; do printf "STOLEN"; done' <&1 &
while ! test -e go; do sleep 0.02; done
cat FILE; echo "cat said $?"
while ! test -e end; do sleep 0.02; done; kill 0`
		p := startDialogue(t, wrap, line)
		p.Await("(?s)PAINT.*OTHER|OTHER.*PAINT") // the control: they do write
		harness.Write(t, filepath.Join(p.Project, "go"), "")
		p.Await(prompt)
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			_, after, _ := strings.Cut(p.Screen.String(), " wants to ")
			if strings.Contains(after, "PAINT") || strings.Contains(after, "OTHER") ||
				strings.Contains(after, "STOLEN") {
				t.Fatalf("something writes into the question: %q", after[:min(len(after), 400)])
			}
		}
		p.Type("once\n")
		p.Await(prompt + `once\r\n(?s:.*)the content(?s:.*)cat said 0(?s:.*)PAINT(?s:.*)`)
		p.Await(`the content(?s:.*)OTHER`)
		if strings.Contains(p.Screen.String(), "STOLEN") {
			t.Error("somebody else has read the answer")
		}
		harness.Write(t, filepath.Join(p.Project, "end"), "")
		p.Status()
		if left := harness.Find(p.token); len(left) > 0 {
			t.Errorf("%d processes are left", len(left))
		}
	})
}

// An interrupt at the question denies, and the program gets it. The same holds
// for a stop.
func TestAnInterruptAtAQuestionIsADenial(t *testing.T) {
	t.Parallel()
	withOrWithoutCgroups(t, 1, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := startDialogue(t, wrap,
			`stty -isig; trap 'echo inter''rupted; exit 5' INT; cat FILE; echo went on; sleep 1`)
		p.Await(prompt)
		p.Type("\x03")
		p.Await("interrupted")
		if status := p.Status(); status != 5 || p.opened() || p.written() {
			t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.Screen)
		}
	})
}

// If the program is killed while its question is open, the question ends and
// all other processes continue.
func TestAQuestionEndsWithTheProcessThatAsks(t *testing.T) {
	t.Parallel()
	withOrWithoutCgroups(t, 2, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := startDialogue(t, wrap, `sh -c 'echo $$ >pid; exec cat FILE'; echo "cat said $?"; echo still here`)
		p.Await(prompt)
		pid := strings.TrimSpace(harness.Read(t, filepath.Join(p.Project, "pid")))
		if out, err := exec.Command("kill", "-KILL", pid).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p.Await(`question has ended(?s:.*)cat said 137(?s:.*)still here`)
		if status := p.Status(); status != 0 || p.opened() {
			t.Errorf("status %d:\n%s", status, p.Screen)
		}
	})
}

// If exec is killed while it asks, it leaves no stopped process behind.
func TestNothingIsLeftIfExecIsKilledAtAQuestion(t *testing.T) {
	t.Parallel()
	withOrWithoutCgroups(t, 3, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := startDialogue(t, wrap, `trap '' HUP TERM INT; sh -c "sleep 1000; :" "$0" & cat FILE; sleep 1000`)
		p.Await(prompt)
		if n := len(harness.Find(p.token)); n < 2 {
			t.Fatalf("%d processes of the session are found", n)
		}
		if err := p.Command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		harness.Eventually(t, "nothing is left", func() bool { return len(harness.Find(p.token)) == 0 })
		t.Logf("all were dead after %v", time.Since(begun))
	})
}
