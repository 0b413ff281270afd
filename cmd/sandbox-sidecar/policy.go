//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// printPolicy prints what a session may do, and where each line comes from.
func printPolicy(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTerminal)
	project.addModeFlags(flags)
	asJSON := flags.Bool("json", false, "print JSON, as policy/get returns it")
	if err := parseNone(flags, args); err != nil {
		return err
	}
	project.tellInside()
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	compiled := snapshot.Compile(kind)
	for _, d := range compiled.Diagnostics {
		printDiagnostic(stderr, d)
	}
	if err := unnamed(compiled.Doubt); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), doctorTimeout)
	defer cancel()
	result := presentation.Policy(ctx, compiled, tryHere())
	if *asJSON {
		return printJSON(result)
	}
	if doubt := compiled.Doubt; doubt != nil {
		display.Fprintf(stdout, "%v\n", &doubtError{doubt: doubt, tools: !doubt.Named})
	}
	describePolicy(stdout, string(kind), result, snapshot.Project())
	return nil
}

// tryHere tries what this machine enforces of a policy; nil inside a session, where
// that would be about the session.
func tryHere() presentation.Prober {
	if inSession() {
		return nil
	}
	return func(ctx context.Context, p policy.Policy) (spawn.Outcome, error) {
		spawner, end := prober()
		defer end()
		return spawner.ProbePolicy(ctx, p)
	}
}

// describePolicy writes each permission, below the setting that it comes from.
func describePolicy(w io.Writer, kind string, result protocol.PolicyGetResult, project compile.Project) {
	p := result.Policy
	display.Fprintf(w, "a %s in %s, policy %s\n", kind, quoted(p.Project), result.PolicyID)
	if !p.Restricted {
		fmt.Fprint(w, "is not sandboxed; if it were:\n")
	}
	switch {
	case !project.Exists:
	case project.Trusted:
		display.Fprintf(w, "the project's settings are trusted: %s\n", quoted(project.File))
	case len(project.Asks) > 0:
		display.Fprintf(w, "the project's settings ask for more than they get (sandbox-sidecar trust --show): %s\n",
			quoted(project.File))
	}
	for _, warning := range result.Warnings {
		display.Fprintf(w, "warning: %s\n", warning)
	}
	var files groups
	for _, rule := range p.Rules {
		origin := from(rule.Setting, protocol.PolicyOrigin{
			File: rule.File, Line: rule.Line, Entry: rule.Entry,
			Written: rule.Written, Reason: rule.Reason,
		})
		if len(rule.Guarded) > 0 {
			origin += fmt.Sprintf(", %s only if protected paths are enforced", strings.Join(rule.Guarded, ","))
		}
		if slices.Contains(p.TemporaryDirs, rule.Path) {
			origin += ", the project has its own"
		}
		if slices.Contains(p.PrivateCaches, rule.Path) {
			origin += ", changes are kept from programs outside"
		}
		files.add(origin, fmt.Sprintf("%-18s  %s", strings.Join(rule.Access, ","), quoted(rule.Path)))
	}
	const builtIn = "system_paths.read_write (built-in defaults)"
	if p.PrivateRuntimeDir {
		files.add(builtIn, "read,write,execute  a runtime directory of its own")
	}
	if p.PrivateTerminals {
		files.add(builtIn, "read,write          terminals of its own")
	}
	files.print(w, "files")
	for _, section := range []struct {
		title string
		keys  []string
	}{
		{"protected", []string{"protected_paths", compile.GuardKey}},
		{"hidden", []string{"hidden_paths"}},
		{"variables", []string{"allowed_env_vars"}},
		{"hosts", []string{"allowed_hosts"}},
		{"denied hosts", []string{"denied_hosts"}},
		{"unix sockets", []string{"allowed_unix_sockets"}},
		{"keys of agents", []string{"signing_keys"}},
		{"keys that never enter", []string{"credentials"}},
	} {
		var entries groups
		for _, o := range p.Origins {
			if slices.Contains(section.keys, o.Key) {
				entries.add(from(o.Key, o), quoted(o.Value))
			}
		}
		if section.title == "hosts" && p.AllowNetwork {
			entries.first = "all that are not denied, as the network is allowed"
		}
		entries.print(w, section.title)
	}
	fmt.Fprint(w, "\nswitches\n")
	for _, o := range p.Origins {
		if compile.IsScalar(o.Key) {
			display.Fprintf(w, "  %-16s  %-9s  %s\n", o.Key, o.Value, from("", o))
		}
	}
}

// groups are entries of a list, below what they have in common.
type groups struct {
	first   string   // a line before them; "" for none
	titles  []string // in the order of the first entries
	entries map[string][]string
}

func (g *groups) add(title, entry string) {
	if g.entries == nil {
		g.entries = map[string][]string{}
	}
	if g.entries[title] == nil {
		g.titles = append(g.titles, title)
	}
	g.entries[title] = append(g.entries[title], entry)
}

func (g *groups) print(w io.Writer, title string) {
	fmt.Fprintf(w, "\n%s\n", title)
	switch {
	case g.first != "":
		fmt.Fprintf(w, "  %s\n", g.first)
	case len(g.titles) == 0:
		fmt.Fprint(w, "  none\n")
	}
	for _, title := range g.titles {
		fmt.Fprintln(w, display.Fold("  "+display.Line(title), 6))
		for _, entry := range g.entries[title] {
			display.Fprintf(w, "    %s\n", entry)
		}
	}
}

// from describes an origin: "key (file:line), reason".
func from(key string, o protocol.PolicyOrigin) string {
	text := o.File
	if o.Line > 0 {
		text = fmt.Sprintf("%s:%d", o.File, o.Line)
	}
	if settings.ByOrganisation(o.File) {
		text += ", set by your organisation"
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
