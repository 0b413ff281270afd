package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Project is the state of a project's settings file: what it asks for, and
// whether it gets that.
type Project struct {
	// Dir is the project's real path.
	Dir string
	// File is the project's settings file, whether it exists or not.
	File string
	// Exists says whether there is such a file. The user's own file is never a
	// project's.
	Exists bool
	// Trusted says that the file counts as it is written. Otherwise it can only
	// tighten.
	Trusted bool
	// Digest is the SHA-256 of the file's bytes as they were read, in
	// hexadecimal digits; "" if they could not be read.
	Digest string
	// Asks is what the file asks for beyond the user's own policy. If the file
	// is trusted, it is what the trust has opened.
	Asks []Ask
	// Problem is why the file cannot be trusted as it is now; "" if it can.
	Problem string
}

// Project returns the state of the project's file. Without a project directory
// it is empty.
func (s *Snapshot) Project() Project {
	e := s.evaluation(document.KindTool)
	p := Project{Dir: e.policy.Project, Trusted: e.trusted, Asks: s.allAsks()}
	if s.ProjectDir == "" {
		return p
	}
	p.File = filepath.Join(s.ProjectDir, ".zed", "settings.json")
	if s.ProjectState == nil {
		return p
	}
	p.Exists = s.ProjectState.Exists
	if s.ProjectState.Read {
		p.Digest = hex.EncodeToString(s.ProjectState.Digest[:])
	}
	switch {
	case !s.ProjectState.Exists:
		p.Problem = "there is no such file, so there is nothing to trust"
	case s.ProjectState.Problem != nil:
		p.Problem = fmt.Sprintf("it cannot be used (%s)", s.ProjectState.Problem)
		p.Asks = nil // they belong to an older content
	case s.ProjectState.Doubt() != nil:
		p.Problem = fmt.Sprintf("something in it is wrong (%s)", s.ProjectState.Doubt())
		p.Asks = nil // some belong to an older content
	case !trust.IsCleanPath(p.Dir):
		p.Problem = fmt.Sprintf("the name of the project's directory %s is not UTF-8", display.Quote(p.Dir))
	case e.exposure != "":
		p.Problem = e.exposure
	}
	return p
}

// Nested notes a file of settings in a directory or above it, below the project.
// Zed reads such a file, and sessions are not bound by it. There is at most one
// note, of the innermost file that asks for something or cannot be read.
func (s *Snapshot) Nested(dir string) []Note {
	if s.ProjectDir == "" || dir == "" {
		return nil
	}
	view := resolve.NewView(s.FS)
	project := view.Resolve(s.ProjectDir).Path
	for at := range policy.Upwards(view.Resolve(dir).Path) {
		if at == project || !policy.Contains(project, at) {
			return nil
		}
		file := filepath.Join(at, ".zed", "settings.json")
		if view.Entry(file).Err != nil {
			continue
		}
		data, err := s.FS.ReadFile(view.Resolve(file).Path)
		if block, problem := document.Decode(data, s.Host.Platform, document.Project); err == nil && problem == nil &&
			!block.HasSettings() {
			continue
		}
		sum := sha256.Sum256([]byte(file))
		return []Note{{
			Name: "nested-" + hex.EncodeToString(sum[:8]),
			Text: fmt.Sprintf("%s has no effect here: sessions are bound by the settings in their project's own "+
				"directory %s", display.Quote(file), display.Quote(project)),
		}}
	}
	return nil
}

// untrusted says that a list of trusted projects does not count, because only
// variables name it.
func (s *Input) untrusted(r *resolve.View) []document.FileDiagnostic {
	named, kept := s.Host.Places().Trust(), s.Host.Kept().Trust()
	at := r.Resolve(named)
	if named == "" || !at.Exists || at.Path == r.Resolve(kept).Path {
		return nil
	}
	return []document.FileDiagnostic{{File: named, Diagnostic: document.Diagnostic{
		Line: 1, Column: 1, Severity: document.SeverityWarning,
		Message: "no project is trusted by it, because HOME or XDG_STATE_HOME names it: your list is " +
			display.Quote(kept),
	}}}
}
