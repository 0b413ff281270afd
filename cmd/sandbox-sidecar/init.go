//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/starter"
)

// initialise writes settings that turn the sandbox on. It asks first, or has
// --yes.
func initialise(flags *flagSet, args []string) error {
	yes := flags.Bool("yes", false, "do not ask")
	applyTo := flags.String("apply-to", string(settings.ApplyToBoth), "`both|tool|terminal`: what to sandbox")
	mode := flags.String("mode", string(settings.ModeStandard), "`strict|standard|relaxed`: how much to open")
	file := flags.String("settings", "", "`FILE`: settings to write instead of your own")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	choice := starter.Choice{Mode: settings.Mode(*mode), ApplyTo: settings.ApplyTo(*applyTo)}
	if !slices.Contains([]settings.ApplyTo{settings.ApplyToBoth, settings.ApplyToTool, settings.ApplyToTerminal},
		choice.ApplyTo) {
		return misuse(flags, `--apply-to: expected "both", "tool" or "terminal", found %s`, quoted(*applyTo))
	}
	if choice.Mode == settings.ModeOff || !slices.Contains(settings.Modes(), *mode) {
		return misuse(flags, `--mode: expected "strict", "standard" or "relaxed", found %s`, quoted(*mode))
	}
	path, err := ownSettings(flags, *file)
	if err != nil {
		return err
	}
	if on, err := sandboxed(flags, path, *file != ""); err != nil || on.covers(choice.ApplyTo) {
		if err == nil {
			display.Fprintf(stdout, "the sandbox is on already for %s\n", on)
		}
		return err
	}
	if !*yes {
		if !isTerminal(os.Stdin) || !isTerminal(os.Stdout) {
			return misuse(flags, "there is no terminal to ask on: use --yes")
		}
		chosen, ok := askWhat(os.Stdin, os.Stdout, given(flags, "apply-to"), choice.ApplyTo)
		if !ok {
			fmt.Fprintln(stdout, "nothing was written; the sandbox stays as it is")
			return nil
		}
		choice.ApplyTo = chosen
	}
	return turnOn(flags, path, *file != "", choice)
}

// turnOn writes the settings, and says what is sandboxed from now on.
func turnOn(flags *flagSet, path string, named bool, choice starter.Choice) error {
	found := starter.Look(os.Getenv, exec.LookPath)
	created, err := starter.Write(path, settings.Platform, found, choice)
	var paste *starter.PasteError
	if errors.As(err, &paste) {
		printError(stderr, err)
		display.Fprintf(stderr, "sandbox-sidecar: hint: put this into it yourself: %s\n", paste.Text)
		return exitStatus(1)
	}
	if err != nil {
		return err
	}
	verb := "changed"
	if created {
		verb = "wrote"
	}
	display.Fprintf(stdout, "%s %s\n", verb, quoted(path))
	for _, t := range found.Toolchains {
		display.Fprintf(stdout, "found %s: %s\n", t.Name, quoted(t.Program))
	}
	on, err := sandboxed(flags, path, named)
	if err != nil {
		return err
	}
	if !on.covers(choice.ApplyTo) {
		return fmt.Errorf("turn on the sandbox: another settings file overrides %s: see sandbox-sidecar policy",
			quoted(path))
	}
	display.Fprintf(stdout, "sandboxed from now on: %s\n", on)
	fmt.Fprintln(stdout, "try it: sandbox-sidecar exec -- ls ~")
	return nil
}

// ownSettings is the file to write.
func ownSettings(flags *flagSet, file string) (string, error) {
	if file != "" {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", fmt.Errorf("find settings file: %w", err)
		}
		return path, nil
	}
	store, err := openSettings(flags, "")
	if err != nil {
		return "", err
	}
	defer store.Close()
	files := store.Snapshot("").Files()
	if len(files) == 0 {
		return "", errors.New("turn on the sandbox: the home directory is not known: use --settings")
	}
	return files[len(files)-1], nil
}

// kinds are the kinds of session that are sandboxed.
type kinds []settings.Kind

func (k kinds) covers(applyTo settings.ApplyTo) bool {
	return (applyTo == settings.ApplyToTool || slices.Contains(k, settings.KindTerminal)) &&
		(applyTo == settings.ApplyToTerminal || slices.Contains(k, settings.KindTool))
}

func (k kinds) String() string {
	var words []string
	for _, kind := range k {
		words = append(words, string(kind)+"s")
	}
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " and ")
}

// sandboxed is what the user's settings sandbox now. A file that was named need
// not exist.
func sandboxed(flags *flagSet, path string, named bool) (kinds, error) {
	user := ""
	if named {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		user = path
	}
	store, err := openSettings(flags, user)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	snapshot := store.Snapshot("")
	var on kinds
	for _, kind := range []settings.Kind{settings.KindTerminal, settings.KindTool} {
		if compiled := snapshot.Compile(kind); compiled.Policy.Restricted && compiled.Doubt == nil {
			on = append(on, kind)
		}
	}
	return on, nil
}

// askWhat asks what to sandbox. fixed: that was said already, and only yes or no
// is left.
func askWhat(in io.Reader, out io.Writer, fixed bool, applyTo settings.ApplyTo) (settings.ApplyTo, bool) {
	answers := bufio.NewScanner(in)
	for range mostAttempts {
		if fixed {
			fmt.Fprintf(out, "The sandbox is off. Turn it on for %s? [y/N] ", word(applyTo))
		} else {
			fmt.Fprint(out, "The sandbox is off. Turn it on for:\n"+
				"  1  terminals and tools\n  2  tools only (what agents run)\n  3  not now\nYour choice: ")
		}
		if !answers.Scan() {
			fmt.Fprintln(out)
			return "", false
		}
		switch answer := strings.ToLower(strings.TrimSpace(answers.Text())); {
		case fixed && (answer == "y" || answer == "yes"):
			return applyTo, true
		case fixed, answer == "", answer == "3", strings.HasPrefix(answer, "n"):
			return "", false
		case answer == "1":
			return settings.ApplyToBoth, true
		case answer == "2":
			return settings.ApplyToTool, true
		}
	}
	return "", false
}

func word(applyTo settings.ApplyTo) string {
	switch applyTo {
	case settings.ApplyToTool:
		return "tools"
	case settings.ApplyToTerminal:
		return "terminals"
	}
	return "terminals and tools"
}
