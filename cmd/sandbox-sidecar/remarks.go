package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
)

// printRemarks writes a line for each diagnostic of the settings files that
// count: "file:line:column: severity: key: message". What is only worth knowing
// is left to policy, which prints everything.
func printRemarks(w io.Writer, snapshot *settings.Snapshot, diagnostics []settings.FileDiagnostic) {
	files := snapshot.Files()
	for _, d := range diagnostics {
		if d.Severity != settings.SeverityInfo && (slices.Contains(files, d.File) || d.Severity == settings.SeverityError) {
			printRemark(w, d)
		}
	}
}

func printRemark(w io.Writer, d settings.FileDiagnostic) {
	key := ""
	if d.Key != "" {
		key = display.Text(d.Key) + ": "
	}
	fmt.Fprintf(w, "%s:%d:%d: %s: %s%s\n", display.Text(d.File), d.Line, d.Column, d.Severity, key,
		display.Shorten(display.Line(d.Message), mostRemark))
}

// mostRemark is more than any remark has that holds one name or value.
const mostRemark = 400

// doubtError says that something is not done because nobody knows what the
// settings ask for. The diagnostic has been printed.
type doubtError struct {
	doubt *settings.Doubt
	// tools says that terminals do start.
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
	if e.doubt.Named {
		return "fix the file, or leave out --settings to use your own settings"
	}
	return "fix the file; a file that asks for nothing holds {}"
}

// inDoubt returns why a command is not run; nil if it is known what the
// settings ask for. Unlike an editor's terminals it is refused whatever its
// kind: who types it has a terminal to fix the file in.
func inDoubt(doubt *settings.Doubt) error {
	if doubt == nil {
		return nil
	}
	return &doubtError{doubt: doubt}
}

// unnamed returns why a question about settings cannot be answered: the file
// that was asked for cannot be used. It is nil if it can.
func unnamed(doubt *settings.Doubt) error {
	if doubt == nil || !doubt.Named {
		return nil
	}
	return &doubtError{doubt: doubt}
}
