package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// printPolicy prints what a session may do, and where each permission comes from.
func printPolicy(args []string) error {
	flags := newFlags("policy", "policy [flags]")
	project := addProjectFlags(flags, settings.KindTerminal)
	asJSON := flags.Bool("json", false, "print it as policy/get answers it")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	result := rpc.PolicyResult(snapshot.Compile(kind))
	if *asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	p := result.Policy
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if !p.Restricted {
		fmt.Fprintf(out, "a %s in %q is not sandboxed (settings enabled and apply_to); if it were:\n\n", kind, p.Project)
	}
	for _, rule := range p.Rules {
		origin := rule.Setting
		if rule.Line > 0 {
			origin = fmt.Sprintf("%s (%s:%d)", rule.Setting, rule.File, rule.Line)
		}
		fmt.Fprintf(out, "%s\t%q\t%s\n", strings.Join(rule.Access, ","), rule.Path, origin)
	}
	fmt.Fprintf(out, "\nnetwork\t%s\n", allowed(p.AllowNetwork))
	if p.PrivateTerminals {
		fmt.Fprint(out, "terminals\tits own\n")
	}
	fmt.Fprintf(out, "unix sockets\t%s\n", listed(p.UnixSockets))
	fmt.Fprintf(out, "variables\t%s\n", listed(p.AllowedEnvVars))
	fmt.Fprintf(out, "protected\t%s\n", listed(p.ProtectedPaths))
	fmt.Fprintf(out, "if unavailable\t%s\n", p.OnUnavailable)
	fmt.Fprintf(out, "policy id\t%s\n", result.PolicyID)
	if err := out.Flush(); err != nil {
		return err
	}
	for _, d := range p.Diagnostics {
		fmt.Fprintf(os.Stderr, "%s:%d:%d: %s: %s\n", d.File, d.Line, d.Column, d.Severity, d.Message)
	}
	return nil
}

func allowed(yes bool) string {
	if yes {
		return "allowed"
	}
	return "off"
}

func listed(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
