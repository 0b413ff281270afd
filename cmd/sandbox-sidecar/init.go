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
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/starter"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
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
	if err := refuseInside("init"); err != nil {
		return err
	}
	path, err := ownSettings(*file)
	if err != nil {
		return err
	}
	on, current, err := sandboxed(path, *file != "")
	switch {
	case err != nil:
		return err
	case on.covers(choice.ApplyTo) && given(flags, "mode") && current != choice.Mode:
		return fmt.Errorf("the sandbox is on already, in the mode %q: write \"mode\": %q into %s yourself",
			current, choice.Mode, quoted(path))
	case on.covers(choice.ApplyTo):
		display.Fprintf(stdout, "the sandbox is on already for %s\n", on)
		return nil
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
	return turnOn(path, *file != "", choice)
}

// turnOn writes the settings, and says what is sandboxed from now on.
func turnOn(path string, named bool, choice starter.Choice) error {
	found := starter.Look(os.Getenv, exec.LookPath)
	written, err := starter.Write(path, settings.Platform, found, choice)
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
	if written.Created {
		verb = "wrote"
	}
	display.Fprintf(stdout, "%s %s\n", verb, quoted(path))
	for _, t := range written.Toolchains {
		display.Fprintf(stdout, "found %s: %s\n", t.Name, quoted(t.Program))
	}
	if len(written.Beside) > 0 {
		display.Fprintf(stdout, "these keys were in the file, and count more than the mode %s: %s\n", choice.Mode,
			strings.Join(written.Beside, ", "))
	}
	on, _, err := sandboxed(path, named)
	if err != nil {
		return err
	}
	if !on.covers(choice.ApplyTo) {
		return whyNot(path, named, on)
	}
	if named {
		display.Fprintf(stdout, "sandboxed wherever --settings names this file: %s\n", on)
	} else {
		display.Fprintf(stdout, "sandboxed from now on: %s\n", on)
	}
	display.Fprintf(stdout, "try it in a project: %s\n", trial(path, named, on))
	for _, name := range toolchain.AgentNames() {
		agent, _ := toolchain.FindAgent(name)
		if program, err := exec.LookPath(agent.Program); err == nil {
			display.Fprintf(stdout, "found %s: %s; in the sandbox: sandbox-sidecar agent %s\n", name, quoted(program),
				name)
		}
	}
	if line := weaker(probe()); line != "" {
		fmt.Fprintln(stdout, line)
	}
	return nil
}

// trial is a command that is sandboxed by what has been written, and whose refusal
// is told: from a project it may not write in the home directory.
func trial(path string, named bool, on kinds) string {
	words := "sandbox-sidecar exec"
	if named {
		words += " --settings " + quoted(path)
	}
	if !slices.Contains(on, settings.KindTerminal) {
		words += " --kind " + string(settings.KindTool)
	}
	return words + " -- touch ~/sandbox-test"
}

// whyNot says why a file that turns the sandbox on does not count for a kind of
// session. on are the kinds that are sandboxed.
func whyNot(path string, named bool, on kinds) error {
	if !named {
		path = ""
	}
	store, err := openSettings(path)
	if err != nil {
		return err
	}
	defer store.Close()
	snapshot := store.Snapshot("")
	for _, kind := range []settings.Kind{settings.KindTerminal, settings.KindTool} {
		if slices.Contains(on, kind) {
			continue
		}
		compiled := snapshot.Compile(kind)
		if compiled.Doubt != nil {
			printDiagnostics(stderr, snapshot, compiled.Diagnostics)
			return &doubtError{doubt: compiled.Doubt, tools: !compiled.Doubt.Named}
		}
		x, err := explain.Why(snapshot, kind, explain.Connect, "")
		if err != nil {
			return err
		}
		return fmt.Errorf("turn on the sandbox: %s: change that, too", x.Reason)
	}
	return nil
}

// weaker says in one line what this machine enforces not at all, or only in
// part. It is empty if there is nothing to say.
func weaker(protections spawn.Protections) string {
	if protections[platform.Filesystem].Status == platform.Absent {
		return "this machine cannot sandbox: " + unsandboxable + "; sandbox-sidecar doctor says why"
	}
	names := map[platform.Status][]string{}
	for _, name := range platform.Protections {
		if name != platform.Denials { // reports protect nothing
			status := protections[name].Status
			names[status] = append(names[status], name)
		}
	}
	var parts []string
	for _, part := range []struct {
		status platform.Status
		says   string
	}{{platform.Absent, "not enforced here: "}, {platform.Degraded, "enforced in part: "}} {
		if list := names[part.status]; len(list) > 0 {
			parts = append(parts, part.says+strings.Join(list, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(append(parts, "sandbox-sidecar doctor says why, and what helps"), "; ")
}

// ownSettings is the file to write.
func ownSettings(file string) (string, error) {
	if file != "" {
		path, err := filepath.Abs(file)
		if err != nil {
			return "", fmt.Errorf("find settings file: %w", err)
		}
		return path, nil
	}
	store, err := openSettings("")
	if err != nil {
		return "", err
	}
	defer store.Close()
	if gone := store.Gone(); gone != "" {
		printWarnings(stderr, []string{gone})
	}
	files := settings.FilesToWrite(store.Snapshot(""))
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

// sandboxed is what the user's settings sandbox now, and their mode. A file that was
// named need not exist.
func sandboxed(path string, named bool) (on kinds, mode settings.Mode, err error) {
	user := ""
	if named {
		if _, err := fsguard.Lstat(path); errors.Is(err, os.ErrNotExist) {
			return nil, "", nil
		}
		user = path
	}
	store, err := openSettings(user)
	if err != nil {
		return nil, "", err
	}
	defer store.Close()
	snapshot := store.Snapshot("")
	for _, kind := range []settings.Kind{settings.KindTerminal, settings.KindTool} {
		if compiled := snapshot.Compile(kind); compiled.Policy.Restricted && compiled.Doubt == nil {
			on = append(on, kind)
		}
	}
	mode = settings.ModeStandard // without a mode it is the same
	if set := snapshot.Merged().Mode; set != nil {
		mode = *set
	}
	return on, mode, nil
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
		default:
			display.Fprintf(out, "%s is no choice: type 1, 2 or 3\n\n", quoted(answer))
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
