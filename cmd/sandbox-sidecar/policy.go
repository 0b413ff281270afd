package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// printPolicy prints what a session may do, and where each line comes from.
func printPolicy(args []string) error {
	flags := newFlags("policy", "policy [flags]")
	project := addProjectFlags(flags, settings.KindTerminal)
	asJSON := flags.Bool("json", false, "print JSON, as policy/get returns it")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	compiled := snapshot.Compile(kind)
	for _, d := range compiled.Diagnostics {
		printDiagnostic(os.Stderr, d)
	}
	if err := unnamed(compiled.Doubt); err != nil {
		return err
	}
	result := presentation.Policy(compiled)
	if *asJSON {
		encoder := json.NewEncoder(display.JSONWriter(os.Stdout))
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	if doubt := compiled.Doubt; doubt != nil {
		fmt.Printf("%v\n", &doubtError{doubt: doubt, tools: true})
	}
	return describePolicy(os.Stdout, string(kind), result, snapshot.Project())
}

// describePolicy writes a line for each permission, with its origin.
func describePolicy(w io.Writer, kind string, result protocol.PolicyGetResult, project settings.Project) error {
	p := result.Policy
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	display.Fprintf(out, "a %s in %s, policy %s\n", kind, quoted(p.Project), result.PolicyID)
	if !p.Restricted {
		fmt.Fprint(out, "is not sandboxed; if it were:\n")
	}
	switch {
	case !project.Exists:
	case project.Trusted:
		display.Fprintf(out, "the project's settings are trusted: %s\n", quoted(project.File))
	case len(project.Asks) > 0:
		display.Fprintf(out, "the project's settings ask for more than they get (sandbox-sidecar trust --show): %s\n",
			quoted(project.File))
	}
	fmt.Fprint(out, "\nfiles\n")
	for _, rule := range p.Rules {
		origin := from(rule.Setting, protocol.PolicyOrigin{
			File: rule.File, Line: rule.Line, Entry: rule.Entry,
			Written: rule.Written, Reason: rule.Reason,
		})
		if len(rule.Guarded) > 0 {
			origin += fmt.Sprintf(", %s only if protected paths are enforced", strings.Join(rule.Guarded, ","))
		}
		if slices.Contains(p.PrivateCaches, rule.Path) {
			origin += ", changes are kept from programs outside"
		}
		display.Fprintf(out, "  %s\t%s\t%s\n", strings.Join(rule.Access, ","), quoted(rule.Path), origin)
	}
	if p.PrivateRuntimeDir {
		fmt.Fprint(out, "  read,write,execute\ta runtime directory of its own\tsystem_paths.read_write (built-in defaults)\n")
	}
	if p.PrivateTerminals {
		fmt.Fprint(out, "  read,write\tterminals of its own\tsystem_paths.read_write (built-in defaults)\n")
	}
	for _, section := range []struct {
		title string
		has   func(key string) bool
	}{
		{"protected", func(key string) bool { return key == "protected_paths" || key == "settings files" }},
		{"variables", func(key string) bool { return key == "allowed_env_vars" }},
		{"unix sockets", func(key string) bool { return key == "allowed_unix_sockets" }},
	} {
		display.Fprintf(out, "\n%s\n", section.title)
		none := true
		for _, o := range p.Origins {
			if section.has(o.Key) {
				display.Fprintf(out, "  %s\t%s\n", quoted(o.Value), from(o.Key, o))
				none = false
			}
		}
		if none {
			fmt.Fprint(out, "  none\n")
		}
	}
	fmt.Fprint(out, "\nswitches\n")
	for _, o := range p.Origins {
		switch o.Key {
		case "enabled", "apply_to", "allow_network", "toolchain_caches", "on_unavailable", "on_denied":
			display.Fprintf(out, "  %s\t%s\t%s\n", o.Key, o.Value, from("", o))
		}
	}
	return out.Flush()
}

// from describes an origin: "key (file:line), reason".
func from(key string, o protocol.PolicyOrigin) string {
	text := o.File
	if o.Line > 0 {
		text = fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	if o.Written != "" {
		key = o.Written
	}
	switch {
	case o.Entry != "":
		text = fmt.Sprintf("%s: %s (%s)", cmp.Or(o.Written, "toolchains"), o.Entry, text)
	case key != "":
		text = fmt.Sprintf("%s (%s)", key, text)
	}
	if o.Reason != "" {
		text += ", " + o.Reason
	}
	return text
}
