package settings

import (
	"fmt"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

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

// Trust records that the user trusts the project's settings file with its
// present content. A digest that is not empty must be that of this content: a
// change after the user saw what the file asks for is not trusted. The error is
// a *NotTrustedError if the file cannot be trusted; otherwise the list of
// trusted projects could not be written.
func (s *Store) Trust(projectDir, digest string) (compile.Project, error) {
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
	if err := trust.Change(s.host.Kept().Trust(), with); err != nil {
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
func (s *Store) Untrust(projectDir string) (compile.Project, error) {
	dir := s.Snapshot(projectDir).Project().Dir
	// Without an entry there is nothing to write and no reason to create the
	// file.
	if s.listed(dir) {
		without := func(l *trust.List) []trust.Project { return l.Without(dir) }
		if err := trust.Change(s.host.Kept().Trust(), without); err != nil {
			return compile.Project{}, err
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
