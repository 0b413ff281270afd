package presentation

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
)

// Diagnostics are what is wrong with one settings file, or useless in it.
func Diagnostics(list []settings.Diagnostic) []protocol.Diagnostic {
	out := []protocol.Diagnostic{}
	for _, d := range list {
		out = append(out, diagnostic(d))
	}
	return out
}

// FileDiagnostics are those of several settings files.
func FileDiagnostics(list []settings.FileDiagnostic) []protocol.FileDiagnostic {
	out := []protocol.FileDiagnostic{}
	for _, d := range list {
		out = append(out, protocol.FileDiagnostic{File: d.File, Diagnostic: diagnostic(d.Diagnostic)})
	}
	return out
}

func diagnostic(d settings.Diagnostic) protocol.Diagnostic {
	return protocol.Diagnostic{
		Line: d.Line, Column: d.Column, Severity: protocol.Severity(d.Severity), Key: display.Line(d.Key),
		Message: display.Line(d.Message), ProjectDir: d.Project,
	}
}

// Project is the state of a project's settings file.
func Project(p compile.Project) protocol.Project {
	out := protocol.Project{
		ProjectDir: p.Dir, File: p.File, Exists: p.Exists, Trusted: p.Trusted, Digest: p.Digest,
		Asks: []protocol.Ask{}, Problem: display.Line(p.Problem), Message: projectMessage(p),
	}
	for _, a := range p.Asks {
		out.Asks = append(out.Asks, protocol.Ask{
			Key: a.Key, Value: a.Value, Opens: a.Opens, Line: a.Line, Column: a.Column, Message: a.Message(),
		})
	}
	return out
}

// projectMessage says whether a project's settings are trusted.
func projectMessage(p compile.Project) string {
	file := display.Quote(p.File)
	switch {
	case !p.Exists:
		return fmt.Sprintf("There is no %s.", file)
	case p.Problem != "":
		return fmt.Sprintf("%s cannot be trusted: %s.", file, display.Line(p.Problem))
	case p.Trusted:
		return fmt.Sprintf("%s is trusted until it changes.", file)
	case len(p.Asks) > 0:
		return fmt.Sprintf("%s asks for more than your sandbox settings allow, and gets none of it.", file)
	}
	return fmt.Sprintf("%s is not trusted: it can only restrict.", file)
}
