package settings

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
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

// NotTrustedError says why a project was not trusted.
type NotTrustedError struct {
	// File is the settings file to be trusted, or the list of trusted projects
	// if that does not count.
	File string
	// Reason is the cause in words.
	Reason string
	// Hint says what the user can do.
	Hint string
}

// Error says what was attempted, on which file, and why it failed.
func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("trust project: %s: %s", display.Quote(e.File), e.Reason)
}

// Project returns the state of the project's file. Without a project directory
// it is empty.
func (s *Snapshot) Project() Project {
	e := s.evaluation(document.KindTool)
	p := Project{Dir: e.policy.Project, Trusted: e.trusted, Asks: s.allAsks()}
	if s.projectDir == "" {
		return p
	}
	p.File = filepath.Join(s.projectDir, ".zed", "settings.json")
	if s.project == nil {
		return p
	}
	p.Exists = s.project.Exists
	if s.project.Read {
		p.Digest = hex.EncodeToString(s.project.Digest[:])
	}
	switch {
	case !s.project.Exists:
		p.Problem = "there is no such file, so there is nothing to trust"
	case s.project.Problem != nil:
		p.Problem = fmt.Sprintf("it cannot be used (%s)", s.project.Problem)
		p.Asks = nil // they belong to an older content
	case s.project.Doubt() != nil:
		p.Problem = fmt.Sprintf("something in it is wrong (%s)", s.project.Doubt())
		p.Asks = nil // some belong to an older content
	case !trust.IsCleanPath(p.Dir):
		p.Problem = fmt.Sprintf("the name of the project's directory %s is not UTF-8", display.Quote(p.Dir))
	case e.exposure != "":
		p.Problem = e.exposure
	}
	return p
}

// Trust records that the user trusts the project's settings file with its
// present content. A digest that is not empty must be that of this content: a
// change after the user saw what the file asks for is not trusted. The error is
// a *NotTrustedError if the file cannot be trusted; otherwise the list of
// trusted projects could not be written.
func (s *Store) Trust(projectDir, digest string) (Project, error) {
	shown := s.Snapshot(projectDir).Project()
	switch {
	case shown.Problem != "":
		return shown, &NotTrustedError{File: shown.File, Reason: shown.Problem}
	case !shown.Exists:
		return shown, &NotTrustedError{File: shown.File, Reason: "it is not the settings file of a project"}
	case digest != "" && digest != shown.Digest:
		return shown, &NotTrustedError{
			File: shown.File, Reason: "it is not the content that was shown: the file has changed",
			Hint: "check again what it asks for",
		}
	}
	entry := trust.Project{Path: shown.Dir, Digest: shown.Digest, TrustedAt: time.Now().UTC().Truncate(time.Second)}
	with := func(l *trust.List) []trust.Project { return l.With(entry) }
	if err := trust.Change(s.host.Places().Trust(), with); err != nil {
		return shown, err
	}
	s.note(projectDir, audit.Event{Event: audit.Trusted, Files: []string{shown.File}, Digest: shown.Digest})
	now := s.Snapshot(projectDir).Project()
	s.sources.Recheck()
	if !now.Trusted {
		return now, &NotTrustedError{
			File: now.File, Reason: "the file changed while it was being trusted",
			Hint: "check again what it asks for",
		}
	}
	return now, nil
}

// Untrust withdraws the trust in a project, whatever its file holds now. It is
// no error if the project was not trusted.
func (s *Store) Untrust(projectDir string) (Project, error) {
	dir := s.Snapshot(projectDir).Project().Dir
	// Without an entry there is nothing to write and no reason to create the
	// file.
	if s.listed(dir) {
		without := func(l *trust.List) []trust.Project { return l.Without(dir) }
		if err := trust.Change(s.host.Places().Trust(), without); err != nil {
			return Project{}, err
		}
		s.note(projectDir, audit.Event{Event: audit.Untrusted})
	}
	s.sources.Recheck()
	return s.Snapshot(projectDir).Project(), nil
}

// listed reports whether the list, read again, has an entry for the project.
func (s *Store) listed(dir string) bool {
	list := s.sources.Trust()
	return len(list.Without(dir)) < len(list.Projects)
}
