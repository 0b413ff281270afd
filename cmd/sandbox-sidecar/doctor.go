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

// doctorTimeout is far above what its attacks take, which is some tenths of a
// second.
const doctorTimeout = 30 * time.Second

// doctor prints what this machine can enforce, and what came of attacks that it
// has just tried. The exit status is 1 where files cannot be protected, which
// is the least of a sandbox, or where something that is claimed does not hold.
func doctor(args []string) error {
	flags := newFlags("doctor", "doctor [flags]")
	asJSON := flags.Bool("json", false, "print it for programs")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	tracker := lifecycle.Open(lifecycle.Options{Subreaper: again("subreaper"), Env: os.Environ()})
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
		fmt.Fprintln(os.Stderr, "sandbox-sidecar: this machine cannot confine: tools are refused, terminals run with a "+
			"warning (setting on_unavailable)")
		return exitStatus(1)
	}
	return broken(findings)
}

func printProtections(protections spawn.Protections) {
	for _, name := range platform.Protections {
		p := protections[name]
		display.Fprintf(os.Stdout, "%-9s %-17s %s\n", p.Status, name, p.Mechanism)
		display.Fprintf(os.Stdout, "          %s\n", p.Detail)
		if p.Fix != "" {
			display.Fprintf(os.Stdout, "          to mend it: %s\n", p.Fix)
		}
	}
}

// printFindings prints the table of what was tried.
func printFindings(findings []finding) error {
	fmt.Print("\ntried just now:\n\n")
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "protection\tattack\twithout a sandbox\tin a session\t\n")
	for _, f := range findings {
		display.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", f.protection, f.attack, f.control, f.session, f.summary())
	}
	return out.Flush()
}

// broken is an error that says what is claimed and does not hold; nil where all
// does.
func broken(findings []finding) error {
	var all []string
	for _, f := range findings {
		if f.verdict() == verdictBroken {
			all = append(all, fmt.Sprintf("%s is reported as %s, and a session can %s", f.protection, f.status, f.attack))
		}
	}
	if all == nil {
		return nil
	}
	return &spawn.Error{Attempt: "prove protections", Cause: errors.New(strings.Join(all, "; ")),
		Hint: "this is a fault: please report it as SECURITY.md says"}
}

// summary is a verdict for people.
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
