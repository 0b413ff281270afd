package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// doctor prints what this machine can enforce. The exit status is 1 where files cannot be protected, which is the least of a sandbox.
func doctor(args []string) error {
	flags := newFlags("doctor", "doctor")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	tracker := lifecycle.Open(lifecycle.Options{Keeper: again("keeper"), Env: os.Environ()})
	defer tracker.Close()
	protections := newSpawner(tracker, slog.New(slog.DiscardHandler)).Probe(context.Background())
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
	return nil
}
