package settings

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// reporter collects diagnostics on settings files.
type reporter struct {
	// stale are the files of which an older content counts. Diagnostics on it would
	// stand at the wrong lines, so they are dropped.
	stale map[string]bool
	list  []document.FileDiagnostic
}

func (r *reporter) add(
	file string, at document.Position, severity document.Severity, key, format string, args ...any,
) {
	if r.stale[file] {
		return
	}
	r.list = append(r.list, document.FileDiagnostic{File: file, Diagnostic: document.Diagnostic{
		Line: at.Line, Column: at.Column, Severity: severity, Key: key,
		Message: display.Line(fmt.Sprintf(format, args...)),
	}})
}

// reporter returns an empty one for diagnostics on the evaluation.
func (e *evaluation) reporter() *reporter { return &reporter{stale: e.stale} }

// readDiagnostics repeats what was found while the files were read.
func (s *Snapshot) readDiagnostics(l layers) []document.FileDiagnostic {
	r := &reporter{stale: l.stale}
	start := document.Position{Line: 1, Column: 1}
	for _, state := range l.states {
		if state.Problem != nil {
			r.list = append(r.list, document.FileDiagnostic{File: state.File, Diagnostic: *state.Problem})
			continue
		}
		if state.Good == nil {
			continue
		}
		if state.Good.Empty && state.Exists {
			r.add(state.File, start, document.SeverityWarning, "", "%s", document.EmptyText)
		}
		for _, d := range state.Good.Problems {
			r.list = append(r.list, document.FileDiagnostic{File: state.File, Diagnostic: d})
		}
	}
	if s.trust != nil && s.trust.Problem != "" {
		r.add(s.trust.Path, start, document.SeverityError, "", "%s; no project is trusted", s.trust.Problem)
	}
	return r.list
}
