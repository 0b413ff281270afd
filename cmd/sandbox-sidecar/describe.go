//go:build unix

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
)

// ran is a session, as far as its start and its end are described to the user.
type ran interface {
	Outcome() spawn.Outcome
	Limits() []spawn.Reached
	Alarms() []spawn.Alarm
	Findings() []spawn.Finding
	Denials() (list []spawn.Denial, missed int)
}

// hintsAfter says what the sandbox may have to do with a failure.
func hintsAfter(
	r ran, exit spawn.Exit, argv []string, compiled *compile.Result, store *settings.Store,
) []string {
	denials, missed := r.Denials()
	return presentation.Hints(presentation.Failed{
		Exit: exit, Argv: argv, Outcome: r.Outcome(), Unheard: true, Reported: len(denials) > 0 || missed > 0,
		HasToolchain: compiled.HasToolchain, PassVariable: compiled.PassVariable, FirstTime: store.FirstTime,
	})
}

// printEnd prints what there is to say about a session that has ended.
func printEnd(w io.Writer, r ran, hints []string, s refusedSummary) {
	for _, limit := range r.Limits() {
		display.Fprintf(w, "sandbox-sidecar: note: %s\n", presentation.LimitLine(limit))
	}
	listChanges(w, r.Alarms(), r.Findings())
	s.print(w, r)
	for _, hint := range hints {
		display.Fprintf(w, "sandbox-sidecar: hint: %s\n", hint)
	}
}

func printWarnings(w io.Writer, warnings []string) {
	for _, warning := range warnings {
		display.Fprintf(w, "sandbox-sidecar: warning: %s\n", warning)
	}
}

// printUnheld prints the keys that somebody wrote and that do not hold. Briefly,
// that is one line.
func printUnheld(w io.Writer, compiled *compile.Result, outcome spawn.Outcome, briefly bool) {
	unheld := presentation.UnheldKeys(compiled.Written, compiled.Policy.Restricted, outcome)
	if len(unheld) == 0 {
		return
	}
	if !briefly {
		for _, one := range unheld {
			printWarnings(w, []string{one.Warning()})
		}
		return
	}
	var names []string
	for _, one := range unheld {
		names = append(names, one.Names())
	}
	printWarnings(w, []string{"not enforced here, `sandbox-sidecar policy` says why: " + strings.Join(names, ", ")})
}

// printLost prints the grants that a session does not have. Briefly, that is one
// line.
func printLost(w io.Writer, outcome spawn.Outcome, briefly bool) {
	lost := presentation.LostGrants(outcome)
	if briefly && len(lost) > 1 {
		lost = []string{fmt.Sprintf("%s (and %d more)", lost[0], len(lost)-1)}
	}
	printWarnings(w, lost)
}

func printNotes(notes []string) {
	for _, note := range notes {
		display.Fprintf(stderr, "sandbox-sidecar: note: %s\n", note)
	}
}

// maxClosedShown bounds the descriptors that printClosed names.
const maxClosedShown = 4

// printClosed names, in one line, the caller's descriptors that the program does
// not have.
func printClosed(closed []platform.Closed, tooHigh []int) {
	var names []string
	for _, descriptor := range closed {
		names = append(names, fmt.Sprintf("%d (%s)", descriptor.Number, descriptor.What))
	}
	for _, number := range tooHigh {
		names = append(names, fmt.Sprintf("%d (too high)", number))
	}
	if len(names) == 0 {
		return
	}
	more := ""
	if len(names) > maxClosedShown {
		more = fmt.Sprintf(" and %d more", len(names)-maxClosedShown)
		names = names[:maxClosedShown]
	}
	display.Fprintf(stderr, "sandbox-sidecar: note: descriptors closed, as the sandbox does not open them: %s%s\n",
		strings.Join(names, ", "), more)
}

// mostSummed bounds the denials of a summary.
const mostSummed = 12

// refusedSummary is what was refused, and what would allow it by these settings.
type refusedSummary struct {
	store    *settings.Store
	snapshot *compile.Snapshot
	kind     settings.Kind
	line     refusals.Under // what they hold under
	// elsewhere: allow, without flags, would change other settings.
	elsewhere bool
}

// print prints the denials of a command, and the settings that would allow them.
func (s refusedSummary) print(w io.Writer, r ran) {
	denials, missed := r.Denials()
	if len(denials) == 0 {
		return
	}
	fmt.Fprintln(w, "sandbox-sidecar: refused by the sandbox:")
	for i, denial := range denials {
		if i == mostSummed {
			missed += len(denials) - i
			break
		}
		display.Fprintf(w, "sandbox-sidecar:   %s\n", presentation.DenialLine(denial))
		offer := offerFor(s.store, s.snapshot, wish{
			scope: settings.ScopeUser, kind: s.kind, denial: denial, line: s.line,
		})
		suggestion := offer.suggestion
		switch {
		case suggestion.Protected && presentation.WayOn(denial) == "":
			fmt.Fprintln(w, "sandbox-sidecar:     if you trust the command, run it outside the sandbox")
		case suggestion.Key != "":
			display.Fprintf(w, "sandbox-sidecar:     to allow it: %s%s\n", suggestion.InstructionInFull(),
				s.command(denial, offer))
		case offer.unhelpful:
			display.Fprintf(w, "sandbox-sidecar:     note: %s\n", offer.why)
		}
		if suggestion.Hint != "" {
			display.Fprintf(w, "sandbox-sidecar:     %s\n", note(suggestion.Hint))
		}
	}
	if missed > 0 {
		display.Fprintf(w, "sandbox-sidecar:   and %d more\n", missed)
	}
}

// atPrompt is what an interactive shell shows about a denial before its next prompt.
// Once that has a number it names the step, which a session does not take by itself.
func (s refusedSummary) atPrompt(denial spawn.Denial) string {
	if denial.Number == 0 || s.elsewhere {
		return presentation.PromptLine(denial, "")
	}
	purpose := "why"
	if offerFor(s.store, s.store.Snapshot(s.snapshot.ProjectDir), wish{
		scope: settings.ScopeUser, kind: s.kind, denial: denial, line: s.line,
	}).proposal != nil {
		purpose = "to allow it"
	}
	step := fmt.Sprintf("%s, outside: `sandbox-sidecar allow %d`", purpose, denial.Number)
	return presentation.PromptLine(denial, step)
}

// command is the command that writes the setting, in brackets; "" if there is
// none.
func (s refusedSummary) command(denial spawn.Denial, o offer) string {
	if o.proposal == nil || denial.Number == 0 || s.elsewhere {
		return ""
	}
	return fmt.Sprintf(" (sandbox-sidecar allow %d)", denial.Number)
}

// elsewhere reports whether the flags name other settings or another project.
func (p *projectFlags) elsewhere(flags *flagSet) bool {
	return given(flags, "settings") || given(flags, "project")
}

// mostListed bounds the changes of each kind that listChanges prints.
const mostListed = 12

// listChanges prints what happened to protected paths, and the files to check
// because programs outside the sandbox act on them. What an alarm says of a path
// need not be said again. What is created below a new path, as by "git init", is
// part of it.
func listChanges(w io.Writer, alarms []spawn.Alarm, findings []spawn.Finding) {
	said := map[string]bool{}
	printed := 0
	for _, alarm := range alarms {
		if slices.ContainsFunc(findings, func(f spawn.Finding) bool {
			return f.How == "created" && strings.HasPrefix(alarm.Path, f.Path+"/")
		}) {
			continue
		}
		if printed++; printed <= mostListed {
			said[alarm.Path] = true
			display.Fprintf(w, "sandbox-sidecar: warning: %s\n", presentation.AlarmLine(alarm))
		}
	}
	if printed > mostListed {
		display.Fprintf(w, "sandbox-sidecar: warning: and %d more such changes\n", printed-mostListed)
	}
	findings = slices.DeleteFunc(slices.Clone(findings), func(f spawn.Finding) bool {
		return len(f.Others) == 0 && said[f.Path]
	})
	if len(findings) > 0 {
		fmt.Fprintln(w, "sandbox-sidecar: check before programs outside the sandbox use it:")
	}
	for i, finding := range findings {
		if i == mostListed {
			display.Fprintf(w, "sandbox-sidecar:   and %d more\n", len(findings)-i)
			break
		}
		display.Fprintf(w, "sandbox-sidecar:   %s\n", presentation.FindingLine(finding))
	}
}

// note is a hint with a label. A hint that tells the user to be careful is its
// own label.
func note(hint string) string {
	if strings.HasPrefix(hint, "careful: ") {
		return hint
	}
	return "note: " + hint
}
