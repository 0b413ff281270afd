//go:build linux

package recording

import (
	"bytes"
	"flag"
	"html"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

var update = flag.Bool("update", false, "write what is printed to README.md, and draw docs/recording.svg")

func TestMain(m *testing.M) { harness.Main(m) }

const (
	readme  = "../../README.md"
	picture = "../../docs/recording.svg"
)

// The home and the project of whoever reads README.md. Their lengths matter, as
// answers are folded at 80 columns.
const theirHome, theirProject = "/home/you", "/home/you/project"

// TestReadme_SaysWhatIsPrinted types the commands of README.md, in their order,
// into a bash of a user with an empty home.
func TestReadme_SaysWhatIsPrinted(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "bash")
	text := harness.Read(t, readme)
	said := consoles(text)
	if len(said) == 0 {
		t.Fatal("README.md has no console")
	}
	w := newReader(t)
	var real []step
	for _, s := range said {
		real = append(real, w.types(t, s.command))
	}
	if most := widest(real); most > columns {
		t.Errorf("a line has %d columns, at most %d", most, columns)
	}
	if *update {
		harness.Must(t, os.WriteFile(readme, []byte(replaceConsoles(text, real)), 0o644))
		harness.Must(t, os.WriteFile(picture, []byte(svg(firstConsole(text, real))), 0o644))
		return
	}
	for i, s := range said {
		if !slices.Equal(s.output, real[i].output) {
			t.Errorf("%s\nREADME.md says %q\nprinted is     %q\n(make recording)", s.command, s.output, real[i].output)
		}
	}
	var drawn []string
	for _, line := range textElement.FindAllStringSubmatch(harness.Read(t, picture), -1) {
		drawn = append(drawn, html.UnescapeString(anyTag.ReplaceAllString(line[1], "")))
	}
	var want []string
	for _, s := range firstConsole(text, real) {
		want = append(append(want, "$ ", s.command), s.output...)
	}
	if !slices.Equal(drawn, want) {
		t.Errorf("docs/recording.svg shows %q\nprinted is %q\n(make recording)", drawn, want)
	}
}

var (
	textElement = regexp.MustCompile(`<text[^>]*>(.*)</text>`)
	anyTag      = regexp.MustCompile(`<[^>]*>`)
	// console is a block of commands, each behind "$ ", with what they print.
	console = regexp.MustCompile("(?s)```console\n(.*?)```")
)

// consoles are the steps of all consoles of a text.
func consoles(text string) []step {
	var steps []step
	for _, block := range console.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimRight(line, "\n")
			if command, is := strings.CutPrefix(line, "$ "); is {
				steps = append(steps, step{command: command})
			} else if len(steps) > 0 {
				last := &steps[len(steps)-1]
				last.output = append(last.output, line)
			}
		}
	}
	return steps
}

// firstConsole are those of the steps that the first console has.
func firstConsole(text string, steps []step) []step {
	return steps[:len(consoles(console.FindString(text)))]
}

// replaceConsoles replaces what commands print.
func replaceConsoles(text string, steps []step) string {
	return console.ReplaceAllStringFunc(text, func(block string) string {
		var b strings.Builder
		b.WriteString("```console\n")
		for range consoles(block) {
			b.WriteString("$ " + steps[0].command + "\n")
			for _, line := range steps[0].output {
				b.WriteString(line + "\n")
			}
			steps = steps[1:]
		}
		return b.String() + "```"
	})
}

// reader is somebody who follows README.md.
type reader struct {
	*harness.World
	env []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, filepath.Join(w.Home, ".ssh", "id_ed25519"), "a private key\n")
	bin := filepath.Join(filepath.Dir(w.Home), "bin")
	harness.Must(t, os.Mkdir(bin, 0o755))
	harness.Must(t, os.Symlink(harness.Binary(t), filepath.Join(bin, "sandbox-sidecar")))
	return &reader{w, append(harness.Environ(w), "TERM=xterm", "NO_COLOR=1", "PATH="+bin+":"+harness.SearchPath)}
}

// types runs a command in bash, on a terminal in the project, and returns what
// the reader would see.
func (r *reader) types(t *testing.T, line string) step {
	t.Helper()
	command := exec.Command("/bin/bash", "-c", line)
	command.Dir, command.Env = r.Project, r.env
	begun := time.Now()
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 24, Cols: columns})
	harness.Must(t, err)
	defer terminal.Close()
	out, _ := io.ReadAll(terminal) // it fails with EIO at the end
	_ = command.Wait()             // README.md shows commands that are refused, too
	s := step{command: line, took: time.Since(begun)}
	text := harness.Unfold(strings.ReplaceAll(string(out), "\r", ""))
	text = strings.NewReplacer(r.Project, theirProject, r.Home, theirHome).Replace(text)
	var folded bytes.Buffer
	_, err = display.Folding(&folded).Write([]byte(text))
	harness.Must(t, err)
	for line := range strings.Lines(folded.String()) {
		s.output = append(s.output, strings.TrimRight(line, "\n"))
	}
	return s
}

// TestReadme_CommandsRun runs the commands of README.md's scripts that start the
// sidecar. None is wrong usage or a missing program of its own.
func TestReadme_CommandsRun(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	scripts := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(harness.Read(t, readme), -1)
	ran := 0
	for _, script := range scripts {
		for line := range strings.Lines(script[1]) {
			if !strings.HasPrefix(line, "sandbox-sidecar ") {
				continue
			}
			ran++
			w := newReader(t)
			command := exec.Command("/bin/bash", "-c", line)
			command.Dir, command.Env = w.Project, w.env
			terminal, err := pty.Start(command)
			harness.Must(t, err)
			_, err = terminal.WriteString("\n") // answers a question
			harness.Must(t, err)
			out, _ := io.ReadAll(terminal)
			terminal.Close()
			_ = command.Wait()
			if status := command.ProcessState.ExitCode(); status == 2 || status == 127 &&
				!strings.Contains(line, "npm") {
				t.Errorf("%s: exit status %d: %s", line, status, out)
			}
		}
	}
	if ran == 0 {
		t.Error("README.md has no command of the sidecar")
	}
}

func TestConsoles_AreReadAndReplaced(t *testing.T) {
	t.Parallel()
	const text = "a\n```console\n$ one\nx\n$ two\n```\nb\n```console\n$ three\ny\nz\n```\n"
	steps := consoles(text)
	if len(steps) != 3 || steps[0].command != "one" || steps[2].output[1] != "z" ||
		len(firstConsole(text, steps)) != 2 {
		t.Errorf("steps %+v", steps)
	}
	steps[1].output = []string{"new"}
	if got := replaceConsoles(text, steps); got != strings.Replace(text, "$ two\n", "$ two\nnew\n", 1) {
		t.Errorf("replaced: %q", got)
	}
}
