//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// cast is what a story is played with.
type cast struct {
	table   string
	binary  string // the sidecar
	victim  string // the program of tests/macos/victim
	watcher string // the program of testdata/fsevents.c, if it is there
	props   string // a directory whose content each project gets
	dir     string // outside of what a session has by default
	out     string // for the whole output of each command
	env     []string
}

// theatre is what the commands of a story find.
type theatre struct {
	cast
	outside string
	canary  string // a word that no other process and file has
	pid     int    // of a process with the canary in its environment
}

// patience is how long one command may take.
const patience = 3 * time.Minute

func storyCommand(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("story", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c := cast{out: filepath.Join(evidenceDir(), "story"), env: os.Environ()}
	flags.StringVar(&c.binary, "sidecar", "bin/sandbox-sidecar", "the sidecar")
	flags.StringVar(&c.victim, "victim", "bin/victim", "the program of tests/macos/victim")
	flags.StringVar(&c.watcher, "fsevents", "bin/fsevents", "the program of testdata/fsevents.c, if it is there")
	flags.StringVar(&c.props, "props", "tests/macos/testdata/files", "files for each project")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		return errUsage
	}
	c.table = flags.Arg(0)
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp(home, "sidecar-story-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.dir)
	rows, err := play(ctx, c)
	return errors.Join(err, writeRows(rows, filepath.Join(evidenceDir(), "story.tsv"), os.Stdout))
}

// play runs every row of a table, outside first, and compares. If it is ended, it
// returns the rows that it has.
func play(ctx context.Context, c cast) ([]row, error) {
	text, err := os.ReadFile(c.table)
	if err != nil {
		return nil, err
	}
	tales, err := readStory(string(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.table, err)
	}
	if c.binary, err = filepath.Abs(c.binary); err != nil {
		return nil, err
	}
	th := theatre{
		cast: c, outside: filepath.Join(c.dir, "outside"), canary: "canary-" + strconv.Itoa(os.Getpid()),
	}
	th.props = filepath.Join(c.dir, "props")
	err = errors.Join(os.MkdirAll(th.outside, 0o700), os.MkdirAll(th.out, 0o755),
		os.CopyFS(th.props, os.DirFS(c.props)),
		os.WriteFile(filepath.Join(th.outside, "secret"), []byte("secret\n"), 0o600),
		os.WriteFile(filepath.Join(th.outside, "program"), []byte("#!/bin/sh\n"), 0o700),
		copyProgram(c.victim, filepath.Join(th.props, "victim")))
	if err != nil {
		return nil, err
	}
	// Without the watcher, its rows fail outside too.
	err = copyProgram(c.watcher, filepath.Join(th.props, "fsevents"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	end, err := th.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	var rows []row
	for _, t := range tales {
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		outside, said := th.perform(ctx, t, false)
		rows = append(rows, row{"outside: " + t.name, t.outside, outside, said})
		inside, said := th.perform(ctx, t, true)
		rows = append(rows, row{"inside: " + t.name, t.inside, inside, said})
	}
	return rows, nil
}

// copyProgram puts a copy of a program at a path. A child that is forked meanwhile
// would hold it open for writing, and the kernel executes no such file (ETXTBSY).
func copyProgram(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(to, content, 0o700)
}

// begin starts the process outside, and changes a file outside all the time.
func (th *theatre) begin(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	process := exec.CommandContext(ctx, filepath.Join(th.props, "victim"), "wait")
	process.Env = append(slices.Clone(th.env), "STORY_CANARY="+th.canary)
	stdin, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	th.pid = process.Process.Pid
	changing := make(chan struct{})
	go func() {
		defer close(changing)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_ = os.WriteFile(filepath.Join(th.outside, th.canary), []byte(strconv.Itoa(i)), 0o600)
			}
		}
	}()
	return func() {
		_ = stdin.Close()
		_ = process.Wait()
		cancel()
		<-changing
	}, nil
}

// settings writes the settings of a row, and returns the path.
func (th theatre) settings(t tale) (string, error) {
	text := "{}\n"
	if len(t.toolchains) > 0 {
		text = fmt.Sprintf("{\"terminal\": {\"sandbox\": {\"toolchains\": [\"%s\"]}}}\n",
			strings.Join(t.toolchains, `", "`))
	}
	path := filepath.Join(th.dir, "settings.json")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

var unnamed = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// perform runs a row's command in a fresh project. It returns the outcome, and the
// end of what was printed.
func (th theatre) perform(ctx context.Context, t tale, inside bool) (outcome, said string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	place := map[bool]string{false: "outside", true: "inside"}[inside]
	project, err := os.MkdirTemp(th.dir, "project-")
	if err != nil {
		return "error", err.Error()
	}
	defer os.RemoveAll(project)
	if err := os.CopyFS(project, os.DirFS(th.props)); err != nil {
		return "error", err.Error()
	}
	if printed, err := exec.CommandContext(ctx, "git", "init", "-q", project).CombinedOutput(); err != nil {
		return "error", string(printed)
	}
	text := strings.NewReplacer("{pid}", strconv.Itoa(th.pid), "{outside}", th.outside, "{canary}", th.canary).
		Replace(t.command)
	args := []string{"/bin/sh", "-ec", text}
	if inside {
		settings, err := th.settings(t)
		if err != nil {
			return "error", err.Error()
		}
		args = append([]string{th.binary, "exec", "--sandbox", "--settings", settings, "--"}, args...)
	}
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Dir, command.Env = project, th.env
	// What a row leaves running would hold the pipe of its output open.
	command.WaitDelay = 10 * time.Second
	run := piped
	if t.tty {
		run = onTerminal
	}
	printed, err := run(command)
	name := unnamed.ReplaceAllString(t.name, "-") + "." + place + ".txt"
	report := fmt.Sprintf("%s\n%s\n%v\n", text, printed, err)
	if err := os.WriteFile(filepath.Join(th.out, name), []byte(report), 0o644); err != nil {
		return "error", err.Error()
	}
	said = tail(printed)
	switch {
	case ctx.Err() != nil:
		return "hangs", said
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return ok, said
	}
	if exit, is := errors.AsType[*exec.ExitError](err); is && exit.Exited() {
		return fails, fmt.Sprintf("%v: %s", err, said)
	}
	return "error", fmt.Sprintf("%v: %s", err, said)
}

func piped(command *exec.Cmd) (string, error) {
	var all bytes.Buffer
	command.Stdout, command.Stderr = &all, &all
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := command.Run()
	return all.String(), err
}

// onTerminal gives a command a terminal, as its controlling one.
func onTerminal(command *exec.Cmd) (string, error) {
	master, err := pty.StartWithSize(command, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		return "", err
	}
	printed := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(master) // it ends by an error when nobody holds the terminal
		printed <- string(all)
	}()
	err = command.Wait()
	// What the command has left running may hold the terminal.
	select {
	case text := <-printed:
		return text, errors.Join(err, master.Close())
	case <-time.After(command.WaitDelay):
		return "", errors.Join(err, master.Close())
	}
}
