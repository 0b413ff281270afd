//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The rows of the tables about a large repository.
const (
	rowLarge = "large repository"
	rowEmpty = "empty project"
)

// large compares a large repository with an empty project: nobody should pay for
// the size of what a command does not touch.
func (b *bench) large() error {
	w := b.world
	dir, empty := filepath.Join(w.root, "large"), filepath.Join(w.root, "empty")
	if err := os.MkdirAll(empty, 0o700); err != nil {
		return err
	}
	if err := makeLarge(dir); err != nil {
		return fmt.Errorf("make a large repository: %w", err)
	}
	const what = "The repository has 5,000 directories, 50,000 files, 500 refs, 20 repositories in it, and 30,000 " +
		"files in node_modules."
	boxed := launcher{name: rowBoxed, argv: b.exec(w.offline), env: w.env}
	launch := func(in string) func() (float64, float64, error) {
		return func() (float64, float64, error) {
			_, wall, cpu, err := boxed.launch(in, "/bin/true")
			return wall, cpu, err
		}
	}
	b.add(&table{
		ID: "large-exec", Title: "Launching /bin/true in a large repository", Unit: "ms", Baseline: rowEmpty,
		How: "The sidecar, sandboxed, no network: one command from its start to its end. " + what,
		Rows: takeTurns(b.rounds(30), b.limit(20*time.Second), []contestant{
			{name: rowEmpty, sample: launch(empty)}, {name: rowLarge, sample: launch(dir)},
		}),
	})
	var list []contestant
	for _, in := range []struct{ name, dir string }{{rowEmpty, empty}, {rowLarge, dir}} {
		s, err := startSidecar(w.sidecar, w.on, in.dir, w.env)
		if err != nil {
			return err
		}
		defer s.stop()
		list = append(list, contestant{name: in.name, sample: func() (float64, float64, error) {
			took, err := ending(s)
			return took, 0, err
		}})
	}
	b.add(&table{
		ID: "large-end", Title: "The end of a session in a large repository", Unit: "ms", Baseline: rowEmpty,
		How: "From the output of a program, which ends at once, to `terminal/exited`: a sandboxed terminal. " +
			what,
		Rows: takeTurns(b.rounds(30), b.limit(20*time.Second), list),
	})
	return nil
}

// ending is the time from a program's output to the notification of its end, in
// ms.
func ending(h host) (float64, error) {
	s, err := h.start("/bin/echo", "x")
	if err != nil {
		return 0, err
	}
	if err := await("output", s.first); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := await("a program's end", s.exited); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(begun))
	return took, s.close()
}

// makeLarge makes the repository. Its directories are three deep.
func makeLarge(dir string) error {
	const directories, files, refs, repositories, modules = 5000, 50_000, 500, 20, 30_000
	if err := makeFiles(dir, directories, files, func(i int) string {
		return fmt.Sprintf("p%d/q%d/d%d", i%20, i%200, i)
	}); err != nil {
		return err
	}
	if err := makeFiles(filepath.Join(dir, "node_modules"), modules/10, modules, func(i int) string {
		return fmt.Sprintf("m%d/lib%d", i%300, i)
	}); err != nil {
		return err
	}
	for i := range repositories {
		nested := filepath.Join(dir, "p"+strconv.Itoa(i), "nested")
		if err := os.MkdirAll(nested, 0o700); err != nil {
			return err
		}
		if err := inDir(nested, "git", "init", "-q", "."); err != nil {
			return err
		}
	}
	git := func(input string, args ...string) error {
		command := exec.Command("git", append([]string{
			"-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgSign=false",
		}, args...)...)
		command.Dir, command.Stdin = dir, strings.NewReader(input)
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, firstLine(string(output)))
		}
		return nil
	}
	var branches strings.Builder
	for i := range refs {
		fmt.Fprintf(&branches, "create refs/heads/b%d HEAD\n", i)
	}
	for _, call := range []struct {
		input string
		args  []string
	}{
		{"", []string{"init", "-q", "."}},
		{"", []string{"commit", "-q", "--allow-empty", "-m", "empty"}},
		{branches.String(), []string{"update-ref", "--stdin"}},
		{"", []string{"pack-refs", "--all"}},
	} {
		if err := git(call.input, call.args...); err != nil {
			return err
		}
	}
	return nil
}

// makeFiles makes files in so many directories, which have names by number.
func makeFiles(dir string, directories, files int, name func(int) string) error {
	for i := range directories {
		in := filepath.Join(dir, name(i))
		if err := os.MkdirAll(in, 0o700); err != nil {
			return err
		}
		for j := range files / directories {
			if err := os.WriteFile(filepath.Join(in, "f"+strconv.Itoa(j)), []byte("x\n"), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
