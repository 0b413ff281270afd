package compile

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

const shellKey = "shell"

// shell is the program with its arguments that a kind of session runs; nil: the
// usual one. An untrusted project has no say, because sessions that are not
// sandboxed run it, too.
func (s *Input) shell(e *evaluation, kind document.Kind) []string {
	argv := e.merged.Shell
	if len(argv) == 0 && kind == document.KindTerminal {
		for _, state := range s.UserStates {
			if state.Good != nil && state.Good.EditorShell != nil {
				argv = state.Good.EditorShell
			}
		}
	}
	if !isShell(argv) {
		return nil
	}
	program := argv[0]
	if strings.HasPrefix(program, "~/") {
		var err error
		if program, err = s.Host.Expand(program, ""); err != nil {
			return nil
		}
	}
	// An editor's shell may be this program, so that the editor's own terminals
	// are sandboxed.
	if filepath.Base(program) == "sandbox-sidecar" || slices.Contains(s.OwnPaths, program) {
		return nil
	}
	return append([]string{program}, argv[1:]...)
}

// isShell reports whether a list is a program with its arguments: a name in
// PATH, or an absolute path, which may begin with "~/".
func isShell(argv []string) bool {
	if len(argv) == 0 || argv[0] == "" {
		return false
	}
	return !strings.Contains(argv[0], "/") || filepath.IsAbs(argv[0]) || strings.HasPrefix(argv[0], "~/")
}

func (b bounding) shell(s *settings) {
	if from, set := s.from[shellKey]; set {
		b.reporter.add(from.file, from.At, document.SeverityWarning, shellKey,
			`has no effect in "required"; write it into "defaults"`)
	}
}

func (b *asker) shell() {
	if b.projects(shellKey) && !slices.Equal(b.e.merged.Shell, b.alone.merged.Shell) {
		b.addKey(shellKey, "terminals and command lines run this program, also those that are not sandboxed")
	}
}

// diagnoseShell reports a shell that cannot be one.
func (e *evaluation) diagnoseShell(r *reporter) {
	if from, set := e.user.from[shellKey]; set && !isShell(e.user.values.Shell) {
		r.add(from.file, from.At, document.SeverityError, shellKey,
			"expected a program with its arguments: a name in PATH, or an absolute path; the usual shell runs")
	}
}
