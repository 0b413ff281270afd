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
	const what = "The repository has 5,000 directories, 50,000 files in its index, 500 packed refs and 100 loose " +
		"ones, 20 repositories in it, and 30,000 files in node_modules."
	boxed := launcher{name: rowBoxed, argv: b.exec(w.offline), env: w.env}
	none := launcher{name: rowNone, argv: func(command ...string) []string { return command }, env: w.env}
	launch := func(l launcher, in string, command ...string) contestant {
		return contestant{name: l.name, sample: func() (float64, float64, error) {
			_, wall, cpu, err := l.launch(in, command...)
			return wall, cpu, err
		}}
	}
	both := func(command ...string) []row {
		small, large := launch(boxed, empty, command...), launch(boxed, dir, command...)
		small.name, large.name = rowEmpty, rowLarge
		return takeTurns(b.rounds(30), b.limit(20*time.Second), []contestant{small, large})
	}
	const how = "The sidecar, sandboxed, no network: one command from its start to its end. "
	b.add(&table{
		ID: "large-exec", Title: "Launching /bin/true in a large repository", Unit: "ms", Baseline: rowEmpty,
		How: how + what, Rows: both("/bin/true"),
	})
	b.add(&table{
		ID: "large-write", Title: "A command that writes a file in a large repository", Unit: "ms", Baseline: rowEmpty,
		How: how + "At its end the project is searched. " + what, Rows: both("/bin/sh", "-c", "echo x >file"),
	})
	b.add(&table{
		ID: "large-status", Title: "git status in a large repository", Unit: "ms", Baseline: rowNone,
		How: how + what,
		Rows: takeTurns(b.rounds(20), b.limit(20*time.Second), []contestant{
			launch(none, dir, "git", "status", "--porcelain"), launch(boxed, dir, "git", "status", "--porcelain"),
		}),
	})
	var list, wrote []contestant
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
		wrote = append(wrote, contestant{name: in.name, sample: func() (float64, float64, error) {
			took, err := afterWriting(s)
			return took, 0, err
		}})
	}
	b.add(&table{
		ID: "large-end", Title: "The end of a session in a large repository", Unit: "ms", Baseline: rowEmpty,
		How: "From the output of a program, which ends at once, to `terminal/exited`: a sandboxed terminal. " +
			what,
		Rows: takeTurns(b.rounds(30), b.limit(20*time.Second), list),
	})
	b.add(&table{
		ID: "large-close", Title: "Closing a session that wrote a file in a large repository", Unit: "ms",
		Baseline: rowEmpty,
		How:      "From `terminal/close` to its answer, which has the review: a sandboxed terminal. " + what,
		Rows:     takeTurns(b.rounds(30), b.limit(20*time.Second), wrote),
	})
	return nil
}

// afterWriting is the time that the end of a session takes that wrote a file, in ms.
func afterWriting(h host) (float64, error) {
	s, err := h.start("/bin/sh", "-c", "echo x >file; echo x; read line")
	if err != nil {
		return 0, err
	}
	if err := await("output", s.first); err != nil {
		return 0, err
	}
	begun := time.Now()
	err = s.close()
	return milliseconds(time.Since(begun)), err
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
	const directories, files, refs, loose, repositories, modules = 5000, 50_000, 500, 100, 20, 30_000
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
	// git ignores them, as it would stop at a repository without a commit.
	const ignored = "node_modules/\nnested/\n"
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(ignored), 0o600); err != nil {
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
	branches := func(prefix string, count int) string {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, "create refs/heads/%s%d HEAD\n", prefix, i)
		}
		return text.String()
	}
	for _, call := range []struct {
		input string
		args  []string
	}{
		{"", []string{"init", "-q", "."}},
		{"", []string{"add", "-A"}},
		{"", []string{"commit", "-q", "-m", "all"}},
		{branches("b", refs), []string{"update-ref", "--stdin"}},
		{"", []string{"pack-refs", "--all"}},
		{branches("l", loose), []string{"update-ref", "--stdin"}},
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
