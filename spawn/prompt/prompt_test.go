package prompt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func newBoard(t *testing.T) *Board[string] {
	t.Helper()
	b, err := New[string](t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// show is what a prompt shows.
func show(t *testing.T, b *Board[string]) string {
	t.Helper()
	text := strings.TrimRight(read(t, b.Path()), "\n")
	if err := os.Truncate(b.Path(), 0); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestBoard_ShowsEachTextOnce(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	if got := show(t, b); got != "" {
		t.Errorf("before anything was refused: %q", got)
	}
	b.Add("a", "one")
	b.Add("a", "one")
	b.Add("b", "two")
	b.Replace("b", "two, longer")
	b.Replace("c", "unknown")
	if got := show(t, b); got != "one\ntwo, longer" {
		t.Errorf("got %q", got)
	}
	b.Replace("b", "too late")
	if got := show(t, b); got != "" {
		t.Errorf("shown twice: %q", got)
	}
	b.Add("a", "one")
	b.Replace("a", "1")
	if got := show(t, b); got != "1" {
		t.Errorf("refused again: got %q", got)
	}
	b.Add("a", "one")
	b.Close()
	b.Add("b", "two")
	if got := show(t, b); got != "one" || b.Pending() != nil {
		t.Errorf("after the end: %q", got)
	}
}

func TestBoard_BoundsAFlood(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	for i := range 5 {
		b.Add(fmt.Sprint(i), fmt.Sprint("line ", i))
	}
	want := "line 0\nline 1\nline 2\nsandbox-sidecar: and 2 more refused"
	if got := read(t, b.Path()); got != want+"\n" {
		t.Errorf("got %q", got)
	}
	for i := range 3 * mostKnown {
		b.Add(fmt.Sprint(i), fmt.Sprint("line ", i))
	}
	if got := show(t, b); !strings.HasSuffix(got, "and at least 997 more refused") {
		t.Errorf("got %q", got)
	}
}

// A session can put anything at the path. The sidecar writes nowhere else.
func TestBoard_FollowsNothingThatTheSessionMakes(t *testing.T) {
	t.Parallel()
	b := newBoard(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("as it was"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := b.Path() + ".kept"
	if err := os.Rename(b.Path(), kept); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, b.Path()); err != nil {
		t.Fatal(err)
	}
	b.Add("a", "one")
	if got := read(t, victim); got != "as it was" {
		t.Errorf("the sidecar wrote %q outside", got)
	}
	if got := read(t, kept); got != "one\n" {
		t.Errorf("control: %q", got)
	}
	if _, err := New[string](filepath.Dir(b.Path())); err == nil {
		t.Error("a board was made over what is there")
	}
}

// bash shows the board before its prompt, empties it, and keeps the status.
func TestEnviron_BashShowsTheBoard(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	b := newBoard(t)
	b.Add("a", `refused: %s $(touch x)`)
	const prompts = `set -uC; (exit 3); eval "$PROMPT_COMMAND"; echo "status $?"; eval "$PROMPT_COMMAND"`
	command := exec.Command(program, "-c", prompts)
	command.Env = append(Environ(b.Path(), `echo "own $?"`), "PATH="+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if want := "refused: %s $(touch x)\nown 3\nstatus 0\nown 0\n"; err != nil || string(out) != want {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
	if got := read(t, b.Path()); got != "" {
		t.Errorf("not emptied: %q", got)
	}
}

// A shell that cannot empty the board, as one that is restricted or finds something
// else there, does not repeat it before each prompt, nor why not.
func TestEnviron_BashRepeatsNothing(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	const line, status = "refused: one\n", "status 3\n"
	for name, test := range map[string]struct{ option, first string }{
		"control":    {"-c", line + status},
		"restricted": {"-rc", status},
		"not empty":  {"-c", ""}, // with errors of bash
	} {
		b := newBoard(t)
		b.Add("a", "refused: one")
		path := b.Path()
		if name == "not empty" {
			path = t.TempDir()
		}
		prompt := `(exit 3); eval "$PROMPT_COMMAND"; echo "status $?"; `
		command := exec.Command(program, test.option, prompt+"echo; "+prompt+prompt)
		command.Env = append(Environ(path, ""), "PATH="+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		first, later, _ := strings.Cut(string(out), "\n\n")
		if err != nil || test.first != "" && first+"\n" != test.first || later != status+status {
			t.Errorf("%s: %v: %q, and then %q", name, err, first, later)
		}
	}
}

func TestArgv_OnlyFishHasMore(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "/usr/bin/zsh", "vim"} {
		if got := Argv(program, []string{program, "-i"}); len(got) != 2 {
			t.Errorf("%s: %q", program, got)
		}
	}
	if got := Argv("/usr/bin/fish", []string{"fish", "-i"}); len(got) != 4 || got[0] != "fish" || got[3] != "-i" {
		t.Errorf("fish: %q", got)
	}
	if !Shows("-bash") || !Shows("/bin/zsh5.9") || Shows("dash") || Shows("crash") {
		t.Error("the wrong programs show a board")
	}
}
