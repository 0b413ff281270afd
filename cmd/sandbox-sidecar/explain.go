//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// printWhy prints whether a session could do something, and why.
func printWhy(flags *flagSet, args []string) error {
	project := addProjectFlags(flags, settings.KindTerminal)
	project.addModeFlags(flags)
	asJSON := flags.Bool("json", false, "print JSON, as policy/explain returns it")
	check := flags.Bool("check", false, "end with exit status 1 if it is refused")
	var words []string
	// Flags may follow the words, as people write them.
	for rest := args; ; rest = flags.Args()[1:] {
		if err := parse(flags, rest); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			break
		}
		words = append(words, flags.Arg(0))
	}
	if len(words) != 2 {
		return misuse(flags, "expected ACCESS and TARGET, as in: explain read ~/.ssh")
	}
	project.tellInside()
	attempt, err := explain.ParseAttempt(words[0])
	if err != nil {
		return misuse(flags, "ACCESS: %v%s", err, meantWord(flags, words[0]))
	}
	target, err := explain.ParseTarget(attempt, words[1])
	if err != nil {
		return misuse(flags, "TARGET: %v", err)
	}
	if isPath(attempt, target) {
		if target, err = filepath.Abs(target); err != nil {
			return fmt.Errorf("find target: %w", err)
		}
	}
	store, snapshot, kind, err := project.open(flags)
	if err != nil {
		return err
	}
	defer store.Close()
	compiled := snapshot.Compile(kind)
	printDiagnostics(stderr, snapshot, compiled.Diagnostics)
	if err := unnamed(compiled.Doubt); err != nil {
		return err
	}
	x, err := explain.Why(snapshot, kind, attempt, target)
	if err != nil {
		return err
	}
	result := presentation.Explanation(x)
	if *asJSON {
		if err := printJSON(result); err != nil {
			return err
		}
	} else {
		printExplanation(result, project.allowing(flags, store, snapshot, kind, attempt, target))
	}
	if *check && !result.Allowed {
		return exitStatus(1)
	}
	return nil
}

// isPath reports whether the target is a path, which may be relative to the
// working directory.
func isPath(attempt explain.Attempt, target string) bool {
	switch attempt {
	case explain.Connect, explain.Bind, explain.Sign:
		return false
	}
	return !strings.HasPrefix(target, "~") && !strings.HasPrefix(target, "abstract:")
}

// allowing is the command that allows an access, in brackets; "" if there is none.
func (p *projectFlags) allowing(flags *flagSet, store *settings.Store, snapshot *compile.Snapshot, kind settings.Kind,
	attempt explain.Attempt, target string,
) string {
	s := refusedSummary{store: store, snapshot: snapshot, kind: kind, line: p.under(), elsewhere: p.elsewhere(flags)}
	option, known := map[explain.Attempt]string{
		explain.Read: "", explain.Write: "--write ", explain.Execute: "--execute ", explain.Connect: "",
	}[attempt]
	if !known || !s.byTarget(target) {
		return ""
	}
	var denial spawn.Denial
	denial.Access, denial.Target, denial.Count = platform.Refused(attempt), target, 1
	if o := offerFor(store, snapshot, wish{scope: settings.ScopeUser, kind: kind, denial: denial}); o.proposal == nil {
		return ""
	}
	return fmt.Sprintf(" (sandbox-sidecar allow %s%s)", option, target)
}

func printExplanation(x protocol.PolicyExplainResult, command string) {
	answer := "refused"
	if x.Allowed {
		answer = "allowed"
	}
	display.Fprintf(stdout, "%s: %s\n", answer, x.Reason)
	if !x.Allowed && x.Setting != "" {
		display.Fprintf(stdout, "to allow it: %s%s\n",
			explain.Suggestion{Key: x.Setting, Value: x.Value}.InstructionInFull(), command)
	}
	if x.Hint != "" {
		display.Fprintf(stdout, "%s\n", note(x.Hint))
	}
}
