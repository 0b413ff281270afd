//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// trust shows what a project's settings ask for beyond the user's own, and
// trusts them.
func trust(flags *flagSet, args []string) error {
	show := flags.Bool("show", false, "only show what the project's settings ask for")
	digest := flags.String("digest", "", "`SHA-256`: trust only if the settings file has this digest, which "+
		"--show prints")
	print := addProjectPrinter(flags)
	store, dir, err := openProject(flags, args)
	if err != nil {
		return err
	}
	defer store.Close()
	if *show {
		return print(store.Snapshot(dir).Project())
	}
	if *digest == "" {
		shown := store.Snapshot(dir).Project()
		switch {
		case given(flags, "json"):
			return misuse(flags, "--json asks nothing: use it with --show or --digest")
		case shown.Problem != "":
			return fmt.Errorf("trust project: %s: %s", quoted(shown.File), shown.Problem)
		case shown.Trusted:
			return print(shown)
		case !isTerminal(os.Stdin) || !isTerminal(os.Stdout):
			return misuse(flags, "there is no terminal to ask on: use --digest with what trust --show prints")
		}
		if err := confirmTrust(shown); err != nil {
			return err
		}
		*digest = shown.Digest // trust what was shown, even if the file changes meanwhile
	}
	project, err := store.Trust(dir, *digest)
	if err != nil {
		return err
	}
	return print(project)
}

// addProjectPrinter adds the flag that decides how a project is printed, and returns
// what prints it.
func addProjectPrinter(flags *flagSet) func(compile.Project) error {
	asJSON := flags.Bool("json", false, "print the project as JSON, for programs")
	return func(p compile.Project) error {
		if *asJSON {
			return printJSON(presentation.Project(p))
		}
		return printProject(p)
	}
}

// confirmTrust prints what a project asks for, one line each, and asks the user.
// Only the whole word "yes" confirms. A session can have left the terminal in any
// mode, so the question has its own; what was typed before it is no answer.
func confirmTrust(p compile.Project) error {
	if err := printProject(p); err != nil {
		return err
	}
	if output.err != nil {
		return output.err // nobody has seen them
	}
	answer := ""
	terminal := dialogue{terminal: os.Stdin}
	terminal.hold(func() {
		if terminal.control(flushInput) != nil {
			return
		}
		fmt.Fprint(stdout, "Trust these settings? Type yes, or press Enter to leave them untrusted: ")
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			fmt.Fprintln(stdout)
		}
		answer = strings.TrimSpace(line)
	})
	if answer != "yes" {
		fmt.Fprintln(stdout, "not trusted")
		return exitStatus(1)
	}
	return nil
}

// untrust withdraws the trust in a project.
func untrust(flags *flagSet, args []string) error {
	print := addProjectPrinter(flags)
	store, dir, err := openProject(flags, args)
	if err != nil {
		return err
	}
	defer store.Close()
	project, err := store.Untrust(dir)
	if err != nil {
		return err
	}
	return print(project)
}

// openProject parses flags and one optional directory, and opens the settings.
// The caller closes the store.
func openProject(flags *flagSet, args []string) (*settings.Store, string, error) {
	user := flags.String("settings", "", "`FILE`: settings to read instead of your own")
	if err := parse(flags, args); err != nil {
		return nil, "", err
	}
	if !given(flags, "show") {
		if err := refuseInside(flags.Name()); err != nil {
			return nil, "", err
		}
	}
	switch {
	case flags.NArg() > 1:
		return nil, "", misuse(flags, "unexpected argument %s", quoted(flags.Arg(1)))
	case flags.NArg() == 1 && flags.Arg(0) == "":
		return nil, "", misuse(flags, "the project is empty")
	}
	dir, err := filepath.Abs(flags.Arg(0))
	if err != nil {
		return nil, "", fmt.Errorf("find project directory: %w", err)
	}
	if info, err := fsguard.Stat(dir); errors.Is(err, fsguard.ErrNoAnswer) {
		return nil, "", fmt.Errorf("use project directory: %w", err)
	} else if err != nil || !info.IsDir() {
		return nil, "", misuse(flags, "%s is not a directory", quoted(dir))
	}
	store, err := openSettings(*user)
	if err != nil {
		return nil, "", err
	}
	// If the user's settings cannot be read, it is unknown what is beyond them.
	snapshot := store.Snapshot(dir)
	compiled := snapshot.Compile(settings.KindTool)
	if err := unnamed(compiled.Doubt); err != nil {
		printDiagnostics(stderr, snapshot, compiled.Diagnostics)
		store.Close()
		return nil, "", err
	}
	return store, dir, nil
}

func printProject(p compile.Project) error {
	if !p.Exists {
		display.Fprintf(stdout, "%s has no settings of its own (%s)\n", quoted(p.Dir), quoted(p.File))
		return nil
	}
	if p.Problem != "" {
		display.Fprintf(stdout, "%s cannot be trusted: %s\n", quoted(p.File), p.Problem)
	}
	if len(p.Asks) == 0 && p.Problem == "" {
		display.Fprintf(stdout, "%s asks for nothing beyond your own settings\n", quoted(p.File))
	}
	for _, a := range p.Asks {
		display.Fprintf(stdout, "%s: %s\n", quoted(p.File), a.Message())
	}
	state := "not trusted: its settings can only restrict"
	if p.Trusted {
		state = "trusted: its settings apply until the file changes"
	}
	display.Fprintf(stdout, "%s is %s\n", quoted(p.Dir), state)
	if p.Digest != "" {
		display.Fprintf(stdout, "digest %s\n", p.Digest)
	}
	return nil
}

// quoted escapes a name, which may hold anything, such as escape sequences.
func quoted(name string) string { return display.Quote(name) }
