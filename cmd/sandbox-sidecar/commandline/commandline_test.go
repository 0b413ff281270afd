package commandline

import (
	"flag"
	"os/exec"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// sample has one command with each kind of flag, and one without any.
func sample() Program {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.Bool(VersionFlag, false, "print the version")
	flags.String("kind", "tool", "`terminal|tool`: kind of session")
	flags.String("o", "", "`FILE`: where to write it's result [again]: here")
	flags.String("a-flag-with-a-long-name", "", "`DIR`: a directory that is explained in so many words that they "+
		"need two lines")
	flags.Bool("quiet", false, "print nothing")
	return Program{
		Name: "my-program", Version: "v1", Summary: "my-program does things.", Details: "One.\nTwo.",
		Commands: []Command{
			{
				Name: "run", Args: "[flags] -- CMD [ARG…]", Summary: "run it",
				Details: ".starts with a dot\n-dash \\ and 'quotes'", Takes: Programs, Flags: flags,
			},
			{Name: "stop", Summary: "stop it's work"},
		},
		Examples: [][2]string{{"my-program run -- 'a b'", ".Runs it."}},
		Statuses: [][2]string{{"2", "It's wrong."}},
		Files:    [][2]string{{"~/.my-program", "Files."}},
	}
}

func TestHelp_AlignsAndFolds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := sample()
	p.CommandHelp(&b, p.Commands[0])
	const want = `usage: my-program run [flags] -- CMD [ARG…]

Run it.

.starts with a dot

-dash \ and 'quotes'

  --a-flag-with-a-long-name DIR
                        a directory that is explained in so many words that they
                        need two lines
  --kind terminal|tool  kind of session (default tool)
  -o FILE               where to write it's result [again]: here
  --quiet               print nothing
  --help                print this help
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
	b.Reset()
	p.Help(&b)
	const program = `my-program does things.

usage: my-program COMMAND [ARG…]

  run   run it
  stop  stop it's work

One.

Two.
`
	if b.String() != program {
		t.Errorf("got\n%s\nwant\n%s", &b, program)
	}
	for line := range strings.Lines(b.String()) {
		if display.Width(line) > display.Columns+1 {
			t.Errorf("too wide: %q", line)
		}
	}
}

// Every shell accepts its script, quotation marks in texts included. That the
// scripts complete is tested with the real program, in tests.
func TestCompletion_IsValidShell(t *testing.T) {
	t.Parallel()
	for _, shell := range Shells() {
		var script strings.Builder
		if !sample().Completion(&script, shell) {
			t.Errorf("%s is not known", shell)
		}
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		command := exec.Command(shell, "-n")
		command.Stdin = strings.NewReader(script.String())
		if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v: %s\n%s", shell, err, out, &script)
		}
	}
	if sample().Completion(&strings.Builder{}, "csh") {
		t.Error("csh is known")
	}
}
