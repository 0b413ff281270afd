//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// printDiagnostics writes a line for each warning and error of the settings
// files in use: "file:line:column: severity: key: message". Only the command
// policy prints the others too.
func printDiagnostics(w io.Writer, snapshot *compile.Snapshot, diagnostics []settings.FileDiagnostic) {
	files := snapshot.Files()
	for _, d := range diagnostics {
		if d.Severity != settings.SeverityInfo &&
			(slices.Contains(files, d.File) || d.Severity == settings.SeverityError) {
			printDiagnostic(w, d)
		}
	}
}

// printErrors is printDiagnostics for errors alone.
func printErrors(w io.Writer, diagnostics []settings.FileDiagnostic) {
	for _, d := range diagnostics {
		if d.Severity == settings.SeverityError {
			printDiagnostic(w, d)
		}
	}
}

// mostWarnings bounds the lines of warnings before a command runs.
const mostWarnings = 3

// printFew prints the warnings with which a command starts, in a few lines. Errors
// are not among them: see printErrors.
func printFew(w io.Writer, snapshot *compile.Snapshot, diagnostics []settings.FileDiagnostic, risks []string) {
	files := snapshot.Files()
	var lines []func()
	for _, risk := range risks {
		lines = append(lines, func() { printWarnings(w, []string{risk}) })
	}
	var warnings []settings.FileDiagnostic
	for _, d := range diagnostics {
		if d.Severity == settings.SeverityWarning && slices.Contains(files, d.File) {
			warnings = append(warnings, d)
		}
	}
	if len(warnings) > 1 {
		var untrusted int
		if warnings, untrusted = withoutAsks(snapshot.Project(), warnings); untrusted > 0 {
			text := fmt.Sprintf("%d of the project's settings have no effect unless you trust it: see "+
				"`sandbox-sidecar trust --show`", untrusted)
			lines = append(lines, func() { printWarnings(w, []string{text}) })
		}
	}
	for _, d := range warnings {
		lines = append(lines, func() { printDiagnostic(w, d) })
	}
	more := 0
	if len(lines) > mostWarnings {
		more = len(lines) - (mostWarnings - 1)
		lines = lines[:mostWarnings-1]
	}
	for _, print := range lines {
		print()
	}
	printMore(w, more)
}

// withoutAsks takes away the warnings of what an untrusted project asks for, and
// counts them, if there are several: "trust --show" says the same of each.
func withoutAsks(p compile.Project, warnings []settings.FileDiagnostic) ([]settings.FileDiagnostic, int) {
	asks := func(d settings.FileDiagnostic) bool {
		return d.File == p.File && slices.ContainsFunc(p.Asks, func(a compile.Ask) bool {
			return a.Line == d.Line && a.Column == d.Column
		})
	}
	rest := slices.DeleteFunc(slices.Clone(warnings), asks)
	count := len(warnings) - len(rest)
	if p.Trusted || count < 2 {
		return warnings, 0
	}
	return rest, count
}

// printMore says how many warnings were left out.
func printMore(w io.Writer, more int) {
	if more > 0 {
		fmt.Fprintf(w, "sandbox-sidecar: warning: and %d more; `sandbox-sidecar policy` prints all\n", more)
	}
}

// printBriefly prints the first warning, and how many more there are. A shell
// starts often, and a program may show what it prints each time.
func printBriefly(w io.Writer, snapshot *compile.Snapshot, diagnostics []settings.FileDiagnostic, risks []string) {
	files := snapshot.Files()
	warnings := slices.Clone(risks)
	for _, d := range diagnostics {
		if d.Severity == settings.SeverityWarning && slices.Contains(files, d.File) {
			warnings = append(warnings, fmt.Sprintf("%s: %s", display.Text(d.Key), display.Line(d.Message)))
		}
	}
	if len(warnings) == 0 {
		return
	}
	display.Fprintf(w, "sandbox-sidecar: warning: %s\n", display.Shorten(warnings[0], maxDiagnostic))
	printMore(w, len(warnings)-1)
}

func printDiagnostic(w io.Writer, d settings.FileDiagnostic) {
	key := ""
	if d.Key != "" {
		key = display.Text(d.Key) + ": "
	}
	fmt.Fprintf(w, "%s:%d:%d: %s: %s%s\n", display.Text(d.File), d.Line, d.Column, d.Severity, key,
		display.Shorten(display.Line(d.Message), maxDiagnostic))
}

// maxDiagnostic is more characters than any diagnostic with one name or value
// has.
const maxDiagnostic = 400

// doubtError says that nothing is run because the settings cannot be read. The
// diagnostic has been printed.
type doubtError struct {
	doubt *compile.Doubt
	// tools reports that only tools do not start.
	tools bool
}

func (e *doubtError) Error() string {
	place := display.Shorten(display.Escape(fmt.Sprintf("%s:%d", e.doubt.File, e.doubt.Line)), mostPlace)
	if e.tools {
		return "tools will not start until it is fixed: " + place
	}
	return "nothing starts until it is fixed: " + place
}

// mostPlace keeps the line within 100 characters.
const mostPlace = 43

func (e *doubtError) hint() string {
	if strings.Contains(e.doubt.Message, syscall.EMFILE.Error()) { // or ENFILE, of the whole system
		return "raise the limit of open files (ulimit -n), and try again: the file may be right"
	}
	if e.doubt.Managed() {
		return "your organisation set it; ask whoever administers this machine"
	}
	if e.doubt.Hint != "" {
		return e.doubt.Hint
	}
	if e.doubt.Named {
		return "fix the file, or leave out --settings to use your own settings"
	}
	return "fix the file; a file that asks for nothing holds {}"
}

// inDoubt is the error of a session that was not admitted, in this program's
// words if the settings cannot be read.
func inDoubt(err error) error {
	var doubtful *session.DoubtError
	if errors.As(err, &doubtful) {
		return &doubtError{doubt: doubtful.Doubt}
	}
	return err
}

// unnamed returns why a question about settings cannot be answered: the file of
// --settings cannot be read. Otherwise it is nil.
func unnamed(doubt *compile.Doubt) error {
	if doubt == nil || !doubt.Named {
		return nil
	}
	return &doubtError{doubt: doubt}
}
