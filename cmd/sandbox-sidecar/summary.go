//go:build unix

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// mostSummed bounds the denials of a summary.
const mostSummed = 12

// summarise prints the denials of a command, and the settings that would allow
// them.
func summarise(w io.Writer, running *spawn.Foreground, snapshot *settings.Snapshot, kind settings.Kind) {
	denials, missed := running.Denials()
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
		suggestion, err := presentation.Suggest(snapshot, kind, denial)
		switch {
		case err != nil:
		case suggestion.Unprotects():
			fmt.Fprintln(w, "sandbox-sidecar:     if you trust the command, run it outside the sandbox")
			display.Fprintf(w, "sandbox-sidecar:     to give up the protection: %s\n", suggestion.InstructionInFull())
		case suggestion.Key != "":
			display.Fprintf(w, "sandbox-sidecar:     to allow it: %s\n", suggestion.InstructionInFull())
		case suggestion.Hint != "":
			display.Fprintf(w, "sandbox-sidecar:     %s\n", note(suggestion.Hint))
		}
	}
	if missed > 0 {
		display.Fprintf(w, "sandbox-sidecar:   and %d more\n", missed)
	}
}

// mostListed bounds the changes that listChanges prints.
const mostListed = 12

// listChanges prints what happened to protected paths, and the files to check
// because programs outside the sandbox act on them. What an alarm says of a path
// need not be said again. What is created below a new path, as by "git init", is
// part of it.
func listChanges(w io.Writer, alarms []spawn.Alarm, findings []spawn.Finding) {
	said := map[string]bool{}
	for _, alarm := range alarms {
		if slices.ContainsFunc(findings, func(f spawn.Finding) bool {
			return f.How == "created" && strings.HasPrefix(alarm.Path, f.Path+"/")
		}) {
			continue
		}
		display.Fprintf(w, "sandbox-sidecar: warning: %s\n", presentation.AlarmLine(alarm))
		said[alarm.Path] = true
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
