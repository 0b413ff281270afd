//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/report"
	"github.com/sandbox-sidecar/sandbox-sidecar/cmd/sandbox-sidecar/shells"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/window"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/caller"
)

// originalCommand is what a client of sshd(8) asked for, where a ForceCommand
// took its place.
const originalCommand = "SSH_ORIGINAL_COMMAND"

// integration are the variables by which VS Code tells its own script for a shell
// how it was started. Without the first one the script reads no start-up files.
// They say nothing of the user. VS Code's nonce is left out: commands inside
// could forge marks with it.
var integration = []string{"VSCODE_INJECTION", "VSCODE_SHELL_LOGIN"}

// shell is the subcommand: a shell, or what makes the links.
func shell(flags *flagSet, args []string) error {
	// What follows belongs to the real shell: these flags are not its own.
	if len(args) > 0 && args[0] == "install" {
		return installShells(flags, args[1:])
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		return parse(flags, args)
	}
	if len(args) > 0 && isNothing(args[0]) {
		switch {
		case args[0] == "uninstall":
			return misuse(flags, "there is no uninstall: take the links out of other programs' settings, and remove %s",
				quoted(places.Of(os.Getenv).Shells()))
		case meantWord(flags, args[0]) != "":
			return misuse(flags, "%s is no script%s", quoted(args[0]), meantWord(flags, args[0]))
		}
	}
	return asShell(shells.Generic, append([]string{shells.Generic}, args...))
}

// isNothing reports whether a shell would find no script by a word, which is no flag
// either.
func isNothing(word string) bool {
	if word == "" || strings.ContainsRune("-+", rune(word[0])) || strings.ContainsRune(word, '/') {
		return false
	}
	_, missing := fsguard.Lstat(word)
	_, unfound := exec.LookPath(word)
	return errors.Is(missing, fs.ErrNotExist) && unfound != nil
}

func finder() (shells.Finder, error) {
	self := program()
	if len(self) == 0 {
		return shells.Finder{}, fmt.Errorf("find the real shell: the path of this program is unknown")
	}
	return shells.Finder{Self: self[0], Passwd: spawn.PasswdShell(), Getenv: os.Getenv}, nil
}

// environ is the environment of this process. SHELL names a real shell in it: a
// link would be no program that a session may execute.
func environ() []string {
	env := without(os.Environ(), window.Variable)
	shellFinder, err := finder()
	if err != nil {
		return env
	}
	name, is := shells.CalledAs(os.Getenv("SHELL"))
	if !is {
		return env
	}
	real, err := shellFinder.Find(name)
	if err != nil {
		return env
	}
	return shells.Environment(env, shellFinder.Self, real)
}

// asShell runs the real shell of a name in a session. argv is passed on as it
// is.
func asShell(name string, argv []string) error {
	caller.EndEarly()
	trail.Via = "shell"
	shellFinder, err := finder()
	if err != nil {
		return err
	}
	real, err := shellFinder.Find(name)
	if err != nil {
		return &spawn.NotExecutedError{Cause: err.Error(), Missing: true}
	}
	argv = slices.Clone(argv)
	argv[0] = shells.Argv0(argv[0], real)
	if inSession() {
		return fmt.Errorf("execute %s: %w", real, syscall.Exec(real, argv, os.Environ()))
	}
	// No helper of ours has them for longer than the command runs.
	inherited, _ := caller.Inherited()
	defer runtime.KeepAlive(inherited)
	invocation := shells.Parse(argv[1:], isTerminal(os.Stdin))
	env := shells.Environment(os.Environ(), shellFinder.Self, real)
	if asked := os.Getenv(originalCommand); asked != "" && invocation.Bare {
		argv, invocation.Command = append(argv, "-c", asked), true
		env = without(env, originalCommand)
	}
	told, kind := openReport(), settings.KindTerminal
	var held *report.Held
	if invocation.Command {
		kind = settings.KindTool
		defer reportApart()()
		if told != nil {
			before := stderr
			held = report.Hold(stderr)
			stderr = held
			defer func() { held.Flush(); stderr = before }()
		}
	}
	env = without(without(env, shells.ReportVariable), window.Variable)
	j := jobOfLink()
	j.program, j.argv, j.env, j.report, j.held = real, argv, env, told, held
	j.shares = invocation.Command && told == nil && sharesSandbox() && hasOwner()
	command, _ := find("exec")
	flags := newFlags(command)
	return addProjectFlags(flags, kind).run(flags, j)
}

// jobOfLink is what all commands of links have in common.
func jobOfLink() job { return job{quiet: true, variables: integration} }

// openReport connects to the window that the environment names; nil if it names
// none.
func openReport() *report.Report {
	path := os.Getenv(window.Variable)
	if path == "" {
		return nil
	}
	stateDir, err := lifecycle.StateDir(os.Environ())
	if err != nil {
		return nil
	}
	return report.Open(stateDir, path)
}

// reportApart sends what is for the user to the file that the environment names,
// until the function that it returns is called.
func reportApart() (undo func()) {
	path := os.Getenv(shells.ReportVariable)
	if path == "" {
		return func() {}
	}
	report, err := shells.OpenReport(path, places.Of(os.Getenv).Reports())
	if err != nil {
		display.Fprintf(stderr, "sandbox-sidecar: warning: %v\n", err)
		return func() {}
	}
	before := stderr
	stderr = report
	return func() {
		stderr = before
		report.Close()
	}
}

// without returns an environment without a variable.
func without(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// installShells makes the links, and prints what to do with them.
func installShells(flags *flagSet, args []string) error {
	dir := flags.String("dir", "", "`DIR`: directory for the links instead of your own")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if err := refuseInside("shell install"); err != nil {
		return err
	}
	if *dir == "" {
		*dir = places.Of(os.Getenv).Shells()
	}
	if *dir == "" {
		return misuse(flags, "HOME is not set: use --dir")
	}
	path, err := filepath.Abs(*dir)
	if err != nil {
		return fmt.Errorf("make directory of shells: %w", err)
	}
	shellFinder, err := finder()
	if err != nil {
		return err
	}
	links, err := shells.Install(path, shellFinder)
	if err != nil {
		return err
	}
	// Without a home nothing is kept anywhere.
	if user := places.Of(os.Getenv); path != user.Shells() && user.State() != "" {
		if err := shells.Record(user.ShellsElsewhere(), path); err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, "made links that are shells whose commands are sandboxed:")
	for _, link := range links {
		display.Fprintf(stdout, "  %s\n", display.Text(link))
	}
	fmt.Fprint(stdout, "\nWrite one of these into a program's settings:\n")
	for _, recipe := range shells.Recipes(path, shells.Own(shellFinder.Passwd, links), settings.Platform) {
		fmt.Fprintf(stdout, "\n%s (%s):\n", recipe.Program, recipe.Where)
		for _, line := range recipe.Lines {
			// Not folded: it is copied.
			fmt.Fprintln(output, "  "+display.Escape(line))
		}
	}
	return nil
}
