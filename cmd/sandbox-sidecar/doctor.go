package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// doctorTimeout bounds the attacks, which take some tenths of a second.
const doctorTimeout = 30 * time.Second

// doctor prints what this machine can enforce, and the results of attacks that
// it runs. The exit status is 1 if files cannot be protected, which is the least
// of a sandbox, or if a claim does not hold.
func doctor(args []string) error {
	flags := newFlags("doctor", "doctor [flags]")
	asJSON := flags.Bool("json", false, "print JSON, for programs")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	tracker := lifecycle.Open(lifecycle.Options{Subreaper: reexec("subreaper"), Env: os.Environ()})
	defer tracker.Close()
	spawner := newSpawner(tracker, slog.New(slog.DiscardHandler))
	protections := spawner.Probe(ctx)
	if !*asJSON {
		printProtections(protections)
	}
	findings, err := prove(ctx, spawner, protections)
	if err != nil {
		return err
	}
	if *asJSON {
		err = diagnose(protections, findings).print(os.Stdout)
	} else {
		err = printFindings(findings)
	}
	if err != nil {
		return err
	}
	if protections[platform.Filesystem].Status == platform.Absent {
		fmt.Fprintln(os.Stderr, "sandbox-sidecar: this machine cannot sandbox: tools do not start, terminals start with "+
			"a warning")
		return exitStatus(1)
	}
	return broken(findings)
}

func printProtections(protections spawn.Protections) {
	for _, name := range platform.Protections {
		p := protections[name]
		status := string(p.Status)
		if name == platform.Denials && p.Status == platform.Degraded {
			status = "note" // reports protect nothing, and nobody needs to act
		}
		display.Fprintf(os.Stdout, "%-9s %-17s %s\n", status, name, p.Mechanism)
		display.Fprintf(os.Stdout, "          %s\n", p.Detail)
		if p.Fix != "" {
			display.Fprintf(os.Stdout, "          fix: %s\n", p.Fix)
		}
	}
}

// printFindings prints a table of the attacks.
func printFindings(findings []finding) error {
	fmt.Print("\ntried just now:\n\n")
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "protection\tattack\twithout a sandbox\tin a session\t\n")
	for _, f := range findings {
		display.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", f.protection, f.attack, f.control, f.session, f.summary())
	}
	return out.Flush()
}

// broken returns an error that names every claim that does not hold, or nil.
func broken(findings []finding) error {
	var all []string
	for _, f := range findings {
		if f.verdict() == verdictBroken {
			all = append(all, fmt.Sprintf("%s is reported as %s, but a session can %s", f.protection, f.status, f.attack))
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

// summary describes the verdict.
func (f finding) summary() string {
	switch f.verdict() {
	case verdictUntried:
		return "not tried: refused without a sandbox too"
	case verdictHeld:
		return "held"
	case verdictOpen:
		return fmt.Sprintf("open, as reported (%s)", f.status)
	default:
		return fmt.Sprintf("DOES NOT HOLD, reported as %s", f.status)
	}
}
