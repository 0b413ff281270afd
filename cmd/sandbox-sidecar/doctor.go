package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"text/tabwriter"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// doctorTimeout is far above what its attacks take, which is some tenths of a second.
const doctorTimeout = 30 * time.Second

// doctor prints what this machine can enforce, and what came of attacks that it has just tried. The exit status is 1 where files cannot be
// protected, which is the least of a sandbox, or where something that is claimed does not hold.
func doctor(args []string) error {
	flags := newFlags("doctor", "doctor")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	tracker := lifecycle.Open(lifecycle.Options{Keeper: again("keeper"), Env: os.Environ()})
	defer tracker.Close()
	spawner := newSpawner(tracker, slog.New(slog.DiscardHandler))
	protections := spawner.Probe(ctx)
	for _, name := range platform.Protections {
		p := protections[name]
		fmt.Printf("%-9s %-17s %s\n", p.Status, name, p.Mechanism)
		fmt.Printf("          %s\n", p.Detail)
		if p.Fix != "" {
			fmt.Printf("          to mend it: %s\n", p.Fix)
		}
	}
	if protections[platform.Filesystem].Status == platform.Absent {
		fmt.Fprintln(os.Stderr, "sandbox-sidecar: this machine cannot confine: tools are refused, terminals run with a warning (setting on_unavailable)")
		return exitStatus(1)
	}
	findings, err := prove(ctx, spawner)
	if err != nil {
		return err
	}
	return printFindings(findings)
}

// printFindings prints the table of what was tried. Its error says what does not hold.
func printFindings(findings []finding) error {
	fmt.Print("\ntried just now:\n\n")
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "protection\tattack\twithout a sandbox\tin a session\t\n")
	var broken []error
	for _, f := range findings {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", f.protection, f.attack, f.control, f.session, f.verdict())
		if !f.holds() {
			broken = append(broken, fmt.Errorf("%s is reported as %s, and a session can %s", f.protection, f.status, f.attack))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if broken != nil {
		return &spawn.Error{Attempt: "prove protections", Cause: errors.Join(broken...), Hint: "this is a fault: please report it as SECURITY.md says"}
	}
	return nil
}

// verdict sums a finding up.
func (f finding) verdict() string {
	switch {
	case !f.tried():
		return "not tried: refused without a sandbox too"
	case f.session != attemptWorks:
		return "held"
	case f.holds():
		return fmt.Sprintf("open, as reported (%s)", f.status)
	default:
		return fmt.Sprintf("DOES NOT HOLD, reported as %s", f.status)
	}
}
