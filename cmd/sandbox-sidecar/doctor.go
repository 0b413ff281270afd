//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// doctorTimeout bounds the attacks, which take some tenths of a second.
const doctorTimeout = 30 * time.Second

// doctor prints what this machine can enforce, and the results of attacks that
// it runs. The exit status is 1 if files cannot be protected, which is the least
// of a sandbox, or if a claim does not hold.
func doctor(flags *flagSet, args []string) error {
	asJSON := flags.Bool("json", false, "print JSON, for programs")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	if inSession() {
		return errInSession // it would prove what this session may do, and not what the machine can
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	spawner, end := prober()
	defer end()
	protections := spawner.Probe(ctx)
	if !*asJSON {
		if err := printHere(); err != nil {
			return err
		}
		printProtections(protections)
	}
	findings, err := prove(ctx, spawner, protections)
	if err != nil {
		return err
	}
	if *asJSON {
		if err := diagnose(protections, findings).print(output); err != nil {
			return err
		}
	} else {
		printFindings(findings)
	}
	if protections[platform.Filesystem].Status == platform.Absent {
		fmt.Fprintln(stderr, "sandbox-sidecar: this machine cannot sandbox: "+unsandboxable)
		return exitStatus(1)
	}
	return broken(findings)
}

// unsandboxable is what follows if files cannot be protected.
const unsandboxable = "tools do not start, terminals start with a warning"

// prober is a spawner for trials, and ends what they have started.
func prober() (spawner *spawn.Spawner, end func()) {
	tracker := lifecycle.Open(lifecycle.Options{Subreaper: reexec("subreaper"), Env: os.Environ()})
	spawner = newSpawner(tracker, slog.New(slog.DiscardHandler))
	spawner.Refusals = nil // nobody wants the attacks allowed
	return spawner, func() { _ = tracker.Close() }
}

// probe tries what this machine can enforce.
func probe() spawn.Protections {
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	spawner, end := prober()
	defer end()
	return spawner.Probe(ctx)
}

// Each protection and each attack starts with a line of three columns. What
// follows is indented below the second.
const (
	doctorLine                  = "%-9s %-17s %s"
	doctorIndent, doctorColumn3 = 10, 28
)

// printHere prints what is sandboxed in the working directory, and why.
func printHere() error {
	dir, err := workingDir()
	if err != nil {
		return fmt.Errorf("find working directory: %w", err)
	}
	store, err := openSettings("")
	if err != nil {
		return err
	}
	defer store.Close()
	snapshot := store.Snapshot(dir)
	fmt.Fprint(stdout, "the sandbox in this directory:\n\n")
	for _, kind := range []settings.Kind{settings.KindTerminal, settings.KindTool} {
		x, err := explain.Why(snapshot, kind, explain.Connect, "")
		if err != nil {
			return err
		}
		status, why := "off", x.Reason
		compiled := snapshot.Compile(kind)
		switch {
		case compiled.Doubt != nil && compiled.Doubt.Refused:
			status = "refused"
		case compiled.Policy.Restricted:
			status = "on"
			for _, s := range compiled.Switches {
				if s.Key == "enabled" {
					why = fmt.Sprintf("turned on by %s; %s", s.Origin, why)
				}
			}
			why += "; sandbox-sidecar policy --kind " + string(kind) + " prints the rest"
		case x.Hint != "":
			why += "; " + x.Hint
		}
		printBlock(fmt.Sprintf(doctorLine, status, string(kind)+"s", ""), why)
		for _, risk := range compiled.Risks {
			printBlock("", "warning: "+risk)
		}
	}
	fmt.Fprint(stdout, "\nwhat this machine enforces:\n\n")
	return nil
}

func printProtections(protections spawn.Protections) {
	for _, name := range platform.Protections {
		p := protections[name]
		status := string(p.Status)
		if name == platform.Denials && p.Status == platform.Degraded {
			status = "note" // reports protect nothing, and nobody needs to act
		}
		printBlock(fmt.Sprintf(doctorLine, status, name, p.Mechanism), p.Detail)
		if p.Fix != "" {
			printBlock("", "fix: "+p.Fix)
		}
	}
}

// printFindings prints the attacks.
func printFindings(findings []finding) {
	fmt.Fprint(stdout, "\ntried just now:\n\n")
	for _, f := range findings {
		text := fmt.Sprintf("without a sandbox: %s; in a session: %s", f.control, f.session)
		printBlock(fmt.Sprintf(doctorLine, f.label(), f.protection, f.attack), text)
		if why := f.explanation(); why != "" {
			printBlock("", why)
		}
	}
}

// printBlock prints a line, unless it is empty, and a text below it.
func printBlock(line, text string) {
	if line != "" {
		fmt.Fprintln(stdout, display.Fold(display.Line(strings.TrimRight(line, " ")), doctorColumn3))
	}
	indent := strings.Repeat(" ", doctorIndent)
	fmt.Fprintln(stdout, display.Fold(indent+display.Line(text), doctorIndent))
}

// broken returns an error that names every claim that does not hold, or nil.
func broken(findings []finding) error {
	var all []string
	for _, f := range findings {
		if f.verdict() == verdictBroken {
			all = append(all, fmt.Sprintf("%s is reported as %s, but a session can %s", f.protection,
				f.status, f.attack))
		}
	}
	if all == nil {
		return nil
	}
	return &spawn.Error{
		Attempt: "prove protections", Cause: errors.New(strings.Join(all, "; ")),
		Hint: "this is a security bug: please report it as described in SECURITY.md",
	}
}

// label is the verdict as one word.
func (f finding) label() string {
	switch f.verdict() {
	case verdictUntried:
		return "not tried"
	case verdictHeld:
		return "held"
	case verdictOpen:
		return "open"
	default:
		return "BROKEN"
	}
}

// explanation says more about a verdict, if there is more to say.
func (f finding) explanation() string {
	switch f.verdict() {
	case verdictUntried:
		return "it is refused without a sandbox too"
	case verdictHeld:
		return ""
	case verdictOpen:
		return fmt.Sprintf("open, as reported: %s", f.status)
	default:
		return fmt.Sprintf("it does not hold, but is reported as %s", f.status)
	}
}

// diagnosis is the output of "doctor --json": the protections that this machine
// claims to have, and the results of attacks on them.
type diagnosis struct {
	Protections []diagnosed `json:"protections"`
}

// diagnosed is one protection.
type diagnosed struct {
	Name string `json:"name"`
	platform.Protection
	Attacks []tried `json:"attacks"`
}

// tried is an attack on a protection. Unsandboxed and Session are "works", or
// the kernel's error.
type tried struct {
	Attack      string `json:"attack"`
	Unsandboxed string `json:"unsandboxed"`
	Session     string `json:"session"`
	// Status is the session's own, which can differ from the machine's.
	Status  platform.Status `json:"status"`
	Verdict verdict         `json:"verdict"`
}

// diagnose joins claims and findings, in the order of the reference.
func diagnose(protections spawn.Protections, findings []finding) diagnosis {
	whole := diagnosis{Protections: []diagnosed{}}
	for _, name := range platform.Protections {
		one := diagnosed{Name: name, Protection: protections[name], Attacks: []tried{}}
		one.PreventsChanges = false // for this program only; the detail says it
		for _, f := range findings {
			if f.protection == name {
				one.Attacks = append(one.Attacks, tried{f.attack, f.control, f.session, f.status, f.verdict()})
			}
		}
		whole.Protections = append(whole.Protections, one)
	}
	return whole
}

func (d diagnosis) print(w io.Writer) error {
	encoder := json.NewEncoder(display.JSONWriter(w))
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}
