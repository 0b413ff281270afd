package main

import (
	"fmt"
	"io"
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
		suggestion, err := snapshot.Suggest(kind, string(denial.Access), denial.Target, denial.Process)
		switch {
		case err != nil:
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

// note is a hint with a label. A hint that tells the user to be careful is its
// own label.
func note(hint string) string {
	if strings.HasPrefix(hint, "careful: ") {
		return hint
	}
	return "note: " + hint
}
