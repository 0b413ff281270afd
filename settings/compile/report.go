package compile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// reporter collects diagnostics on settings files.
type reporter struct {
	// stale are the files of which an older content counts. Diagnostics on it would
	// stand at the wrong lines, so they are dropped.
	stale map[string]bool
	// written are the keys as they stand in the files, if they are others.
	written map[place]written
	list    []document.FileDiagnostic
}

// place is a position in a settings file.
type place struct {
	file string
	document.Position
}

// written is a key as it stands in a file, and the mode if it is one.
type written struct {
	key  string
	mode document.Mode
}

// newReporter returns an empty one for diagnostics on the layers.
func newReporter(l layers) *reporter {
	r := &reporter{stale: l.stale, written: map[place]written{}}
	for _, state := range l.states {
		if state.Good == nil {
			continue
		}
		spans := slices.Collect(maps.Values(state.Good.Spans))
		if state.Bound != nil {
			spans = slices.AppendSeq(spans, maps.Values(state.Bound.Spans))
		}
		if agent := state.Good.Agent; agent != nil {
			spans = slices.AppendSeq(spans, maps.Values(agent.Spans))
		}
		for _, span := range spans {
			if span.Written == "" {
				continue
			}
			for _, at := range append(slices.Clone(span.Elements), span.At) {
				if r.written[place{state.File, at}].mode == "" { // the mode's own key stands there, too
					r.written[place{state.File, at}] = written{span.Written, span.Mode}
				}
			}
		}
	}
	return r
}

func (r *reporter) add(
	file string, at document.Position, severity document.Severity, key, format string, args ...any,
) {
	if r.stale[file] || at == inMemory { // no file, no diagnostic
		return
	}
	if written, other := r.written[place{file, at}]; other {
		key = written.key
	}
	r.list = append(r.list, document.FileDiagnostic{File: file, Diagnostic: document.Diagnostic{
		Line: at.Line, Column: at.Column, Severity: severity, Key: key,
		Message: display.Line(fmt.Sprintf(format, args...)),
	}})
}

// addOnce is add, unless the same diagnostic is there.
func (r *reporter) addOnce(
	file string, at document.Position, severity document.Severity, key, format string, args ...any,
) {
	before := len(r.list)
	r.add(file, at, severity, key, format, args...)
	if len(r.list) > before && slices.Contains(r.list[:before], r.list[before]) {
		r.list = r.list[:before]
	}
}

// reporter returns an empty one for diagnostics on the evaluation.
func (e *evaluation) reporter() *reporter { return newReporter(e.layers) }

// readDiagnostics repeats what was found while the files were read.
func (s *Input) readDiagnostics(l layers) []document.FileDiagnostic {
	r := newReporter(l)
	start := document.Position{Line: 1, Column: 1}
	for _, state := range l.states {
		if state.Ignored != nil {
			r.list = append(r.list, document.FileDiagnostic{File: state.File, Diagnostic: *state.Ignored})
		}
		if state.Problem != nil {
			r.list = append(r.list, document.FileDiagnostic{File: state.File, Diagnostic: *state.Problem})
			continue
		}
		if state.Good == nil {
			continue
		}
		if state.Limited != "" && state.Bound.HasSettings() {
			r.add(state.File, start, document.SeverityWarning, "", "can only tighten: %s", state.Limited)
		}
		if state.Good.Empty && state.Exists {
			r.add(state.File, start, document.SeverityWarning, "", "%s", document.EmptyText)
		}
		for _, block := range []*document.Block{state.Good, state.Bound} {
			if block == nil {
				continue
			}
			for _, d := range block.Problems {
				r.list = append(r.list, document.FileDiagnostic{File: state.File, Diagnostic: d})
			}
		}
	}
	if s.Trust != nil && s.Trust.Problem != "" {
		r.add(s.Trust.Path, start, document.SeverityError, "", "%s; no project is trusted", s.Trust.Problem)
	}
	return r.list
}
