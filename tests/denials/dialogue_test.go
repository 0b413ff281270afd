//go:build linux

package denials

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What exec asks in a person's own terminal, and what a program can do about
// it.

// prompt is what ends a question.
const prompt = `allow it\? type deny, once, session, project or user \(Enter denies\): `

// person sits at a terminal on which exec runs a shell's line that may ask.
type person struct {
	*scene
	t        *testing.T
	command  *exec.Cmd
	terminal *os.File
	screen   *harness.Buffer
	read     chan struct{}
	ended    chan struct{}
	token    string // in the command line of the line's shell
}

// sit runs a line under exec. FILE in it is a file that the sandbox does not
// open, with "the content" in it.
func sit(t *testing.T, wrap func(*exec.Cmd), line string) *person {
	t.Helper()
	harness.Require(t, "filesystem")
	s := newScene(t)
	observed(t, s.start(harness.Settings(nil), nil))
	harness.Write(t, s.outside("file"), "the content\n")
	p := &person{scene: s, t: t, screen: &harness.Buffer{}, read: make(chan struct{}), ended: make(chan struct{}),
		token: uuid.NewString()}
	line = strings.ReplaceAll(line, "FILE", s.outside("file"))
	p.command = s.execute(harness.Settings(harness.Sandbox{"on_denied": "ask"}), "exec", "--", "sh", "-c", line, p.token)
	p.command.Env = append(p.command.Env, "TERM=xterm")
	wrap(p.command)
	var err error
	if p.terminal, err = pty.Start(p.command); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.read)
		_, _ = io.Copy(p.screen, p.terminal) // ends with EIO
	}()
	go func() {
		defer close(p.ended)
		_ = p.command.Wait()
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.ended
		p.terminal.Close()
		<-p.read
	})
	return p
}

func (p *person) types(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.terminal, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) sees(pattern string) {
	p.t.Helper()
	p.screen.Await(p.t, pattern)
}

// status waits for the end, and for what was written until then.
func (p *person) status() int {
	p.t.Helper()
	for _, done := range []chan struct{}{p.ended, p.read} {
		select {
		case <-done:
		case <-time.After(harness.Timeout):
			p.t.Fatalf("it does not end; on the screen:\n%s", p.screen)
		}
	}
	return p.command.ProcessState.ExitCode()
}

func (p *person) opened() bool { return strings.Contains(p.screen.String(), "the content") }

func (p *person) written() bool {
	return strings.Contains(harness.Read(p.t, p.UserSettings()), p.outside("file")) ||
		strings.Contains(harness.Read(p.t, filepath.Join(p.Project, ".zed", "settings.json")), p.outside("file"))
}

// everyHold runs a test with each way in which exec makes the session stand
// still.
func everyHold(t *testing.T, run func(t *testing.T, wrap func(*exec.Cmd))) {
	t.Helper()
	t.Run("as it comes", func(t *testing.T) {
		t.Parallel()
		run(t, func(*exec.Cmd) {})
	})
	t.Run("without cgroups", func(t *testing.T) {
		t.Parallel()
		run(t, harness.WithoutCgroups(t))
	})
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
			p := sit(t, func(*exec.Cmd) {}, waits)
			p.sees("ready")
			p.types(ahead)
			harness.Write(t, filepath.Join(p.Project, "go"), "")
			p.sees(prompt)
			p.types("er\n") // ends the part
			p.sees("none of the words")
			p.sees(prompt + `\r?\n?(?s:.*)` + prompt)
			p.types("deny\n")
			if status := p.status(); status == 0 || p.opened() || p.written() {
				t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.screen)
			}
		})
	}
	t.Run("a paste that goes on", func(t *testing.T) {
		t.Parallel()
		// A busy machine may tear a paste apart, so that it is none: then it is
		// tried again.
		var p *person
		for torn := true; torn; {
			torn = false
			p = sit(t, func(*exec.Cmd) {}, waits)
			p.sees("ready")
			harness.Write(t, filepath.Join(p.Project, "go"), "")
			p.sees(` wants to `)
			last := time.Now()
			for range 10 {
				p.types("user\n")
				torn = torn || time.Since(last) > 200*time.Millisecond
				last = time.Now()
				time.Sleep(60 * time.Millisecond) // the pace of the paste, not a wait
			}
			asked := strings.Contains(p.screen.String(), "allow it?")
			torn = torn || time.Since(last) > 200*time.Millisecond
			if asked && !torn {
				t.Errorf("the answer was asked for while it was typed:\n%s", p.screen)
			}
		}
		p.sees(prompt)
		p.types("\n")
		if status := p.status(); status == 0 || p.opened() || p.written() {
			t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.screen)
		}
	})
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
			p := sit(t, func(*exec.Cmd) {}, "cat FILE")
			seen := ""
			for _, typed := range test.typed {
				seen += "(?s:.*)" + prompt
				p.sees(seen)
				p.types(typed)
			}
			if status := p.status(); (status == 0) != test.opens || p.opened() != test.opens || p.written() {
				t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.screen)
			}
		})
	}
}

// What is allowed for good is said, with the file that it was written into.
func TestAPermanentAnswerReportsWhatWasWritten(t *testing.T) {
	t.Parallel()
	for word, file := range map[string]func(p *person) string{
		"user":    func(p *person) string { return p.UserSettings() },
		"project": func(p *person) string { return filepath.Join(p.Project, ".zed", "settings.json") },
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			p := sit(t, func(*exec.Cmd) {}, "cat FILE")
			p.sees(prompt)
			p.types(word + "\n")
			if status := p.status(); status != 0 || !p.opened() || !p.written() {
				t.Errorf("status %d, opened %t, written %t", status, p.opened(), p.written())
			}
			// A long path loses its middle.
			for _, want := range []string{`outside/file" to "additional_read_only_paths" in "`,
				filepath.Join(filepath.Base(filepath.Dir(file(p))), "settings.json") + `"`} {
				if !strings.Contains(p.screen.String(), want) {
					t.Errorf("the screen does not say %s:\n%s", want, p.screen)
				}
			}
		})
	}
}

// While a question is open nothing of the session writes: not the background,
// not what has left the terminal's session. Nobody reads what is typed but
// exec. Afterwards all of them go on.
func TestNothingWritesOverAQuestion(t *testing.T) {
	t.Parallel()
	everyHold(t, func(t *testing.T, wrap func(*exec.Cmd)) {
		const line = `
paint() { while test -d "$PWD"; do printf "$1"; sleep 0.001; done; }
paint PAINT & 
exec 9>&1; setsid sh -c 'while test -d "$PWD"; do printf OTHER >&9; sleep 0.001; done' &
sh -c 'while read x; do printf "STOLEN"; done' <&1 &
while ! test -e go; do sleep 0.02; done
cat FILE; echo "cat said $?"
while ! test -e end; do sleep 0.02; done; kill 0`
		p := sit(t, wrap, line)
		p.sees("(?s)PAINT.*OTHER|OTHER.*PAINT") // the control: they do write
		harness.Write(t, filepath.Join(p.Project, "go"), "")
		p.sees(prompt)
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			_, after, _ := strings.Cut(p.screen.String(), " wants to ")
			if strings.Contains(after, "PAINT") || strings.Contains(after, "OTHER") || strings.Contains(after, "STOLEN") {
				t.Fatalf("something writes into the question: %q", after[:min(len(after), 400)])
			}
		}
		p.types("once\n")
		p.sees(prompt + `once\r\n(?s:.*)the content(?s:.*)cat said 0(?s:.*)PAINT(?s:.*)`)
		p.sees(`the content(?s:.*)OTHER`)
		if strings.Contains(p.screen.String(), "STOLEN") {
			t.Error("somebody else has read the answer")
		}
		harness.Write(t, filepath.Join(p.Project, "end"), "")
		p.status()
		if left := harness.Find(p.token); len(left) > 0 {
			t.Errorf("%d processes are left", len(left))
		}
	})
}

// An interrupt at the question is a no, and the program gets it; a stop
// likewise.
func TestAnInterruptAtAQuestionIsADenial(t *testing.T) {
	t.Parallel()
	everyHold(t, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := sit(t, wrap, `stty -isig; trap 'echo inter''rupted; exit 5' INT; cat FILE; echo went on; sleep 1`)
		p.sees(prompt)
		p.types("\x03")
		p.sees("interrupted")
		if status := p.status(); status != 5 || p.opened() || p.written() {
			t.Errorf("status %d, opened %t, written %t:\n%s", status, p.opened(), p.written(), p.screen)
		}
	})
}

// A program that is killed while it asks takes its question with it, and
// everybody else goes on.
func TestAQuestionEndsWithTheProcessThatAsks(t *testing.T) {
	t.Parallel()
	everyHold(t, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := sit(t, wrap, `sh -c 'echo $$ >pid; exec cat FILE'; echo "cat said $?"; echo still here`)
		p.sees(prompt)
		pid := strings.TrimSpace(harness.Read(t, filepath.Join(p.Project, "pid")))
		if out, err := exec.Command("kill", "-KILL", pid).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		p.sees(`question has ended(?s:.*)cat said 137(?s:.*)still here`)
		if status := p.status(); status != 0 || p.opened() {
			t.Errorf("status %d:\n%s", status, p.screen)
		}
	})
}

// Where exec is killed while it asks, nothing is left that stands still for
// ever.
func TestNothingIsLeftIfExecIsKilledAtAQuestion(t *testing.T) {
	t.Parallel()
	everyHold(t, func(t *testing.T, wrap func(*exec.Cmd)) {
		p := sit(t, wrap, `trap '' HUP TERM INT; sh -c "sleep 1000; :" "$0" & cat FILE; sleep 1000`)
		p.sees(prompt)
		if n := len(harness.Find(p.token)); n < 2 {
			t.Fatalf("%d processes of the session are found", n)
		}
		if err := p.command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		harness.Eventually(t, "nothing is left", func() bool { return len(harness.Find(p.token)) == 0 })
		t.Logf("all were dead after %v", time.Since(begun))
	})
}
