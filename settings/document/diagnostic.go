package document

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
)

// Severity ranks a diagnostic.
type Severity string

const (
	// SeverityError: the setting does not count.
	SeverityError Severity = "error"
	// SeverityWarning: the setting counts, but probably not as meant.
	SeverityWarning Severity = "warning"
	// SeverityInfo is worth knowing.
	SeverityInfo Severity = "info"
)

// Diagnostic says what is wrong in a settings file, or has no effect.
type Diagnostic struct {
	// Line and Column are 1-based; Column counts bytes. A diagnostic about the
	// whole file stands at 1:1.
	Line, Column int
	Severity     Severity
	// Key is the settings key below "terminal.sandbox", such as
	// "system_paths.executable"; empty if there is none.
	Key string
	// Message is one sentence for the user, without a full stop.
	Message string
	// Hint is what to do in place of mending the file; "" if there is no such thing.
	Hint string
	// Project is the only project directory that the diagnostic holds for;
	// empty if it holds for all.
	Project string
}

// FileDiagnostic is a diagnostic with its file: an absolute path, or
// policy.OriginEditor.
type FileDiagnostic struct {
	File string
	Diagnostic
}

// String renders "file:line:column: severity: key: message". What is about no text,
// such as a command line, has no position.
func (d FileDiagnostic) String() string {
	if d.Line == 0 {
		return display.Text(d.File) + ": " + d.said()
	}
	return display.Text(d.File) + ":" + d.Diagnostic.String()
}

// String renders "line:column: severity: key: message".
func (d Diagnostic) String() string { return fmt.Sprintf("%d:%d: %s", d.Line, d.Column, d.said()) }

func (d Diagnostic) said() string {
	if d.Key == "" {
		return fmt.Sprintf("%s: %s", d.Severity, d.Message)
	}
	return fmt.Sprintf("%s: %s: %s", d.Severity, d.Key, d.Message)
}

// Sort orders by file and position and drops duplicates.
func Sort(list []FileDiagnostic) []FileDiagnostic {
	slices.SortStableFunc(list, func(a, b FileDiagnostic) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Project, b.Project))
	})
	return slices.Compact(list)
}
