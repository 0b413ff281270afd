package settings

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// Project is how a project's settings file stands: what it asks for, and
// whether it gets it.
type Project struct {
	// Dir is the project's real path.
	Dir string
	// File is the project's settings file, whether it exists or not.
	File string
	// Exists says whether there is such a file. One that is the user's own file
	// at the same time is not a project's.
	Exists bool
	// Trusted says that the file counts as it is written; else it can only
	// tighten.
	Trusted bool
	// Digest is the SHA-256 of the file's bytes as they were read, in
	// hexadecimal digits; "" where they could not be.
	Digest string
	// Asks is what the file asks for beyond the user's own policy. Where the
	// file is trusted, it is what trusting it has opened.
	Asks []Ask
	// Problem is why the file cannot be trusted as it is now; "" where it can.
	Problem string
}

// NotTrustedError says why a project was not trusted.
type NotTrustedError struct {
	// File is the settings file that was to be trusted, or the list of trusted
	// projects that does not count.
	File string
	// Reason is the cause in words.
	Reason string
	// Hint says what the user can do.
	Hint string
}

// Error names what was attempted, on what, and why it did not succeed.
func (e *NotTrustedError) Error() string {
	return fmt.Sprintf("trust project: %s: %s", display.Quote(e.File), e.Reason)
}

// Project tells how the project's file stands. Without a project directory it
// is empty.
func (s *Snapshot) Project() Project {
	e := s.evaluation()
	p := Project{Dir: e.policy.Project, Trusted: e.trusted, Asks: e.asks}
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
		p.Asks = nil // those of an older content
	case s.project.Doubt() != nil:
		p.Problem = fmt.Sprintf("something in it is wrong (%s)", s.project.Doubt())
		p.Asks = nil // those of an older content among them
	case !trust.IsCleanPath(p.Dir):
		p.Problem = fmt.Sprintf("the name of the project's directory %s is not UTF-8", display.Quote(p.Dir))
	case e.exposure != "":
		p.Problem = e.exposure
	}
	return p
}

// trusts reports whether the user trusted the project's file as it was read,
// for the directory that it is about to govern.
func (s *Snapshot) trusts(project string) bool {
	// Content with a mistake counts with values of an older content, which
	// nobody has trusted.
	return s.trust != nil && s.project != nil && s.project.Read && s.project.Problem == nil && s.project.Doubt() == nil &&
		trust.IsCleanPath(project) &&
		s.trust.Trusts(project, hex.EncodeToString(s.project.Digest[:]))
}

// trustExposed says how sessions under the user's own policy could write the
// list of trusted projects; then nobody knows who wrote it, and nothing on it
// counts. It is "" where they cannot.
func (s *Snapshot) trustExposed(e *evaluation) string {
	for _, path := range s.trustFiles(e.View) {
		if rule, ok := e.policy.Find(policy.Write, path); ok {
			return fmt.Sprintf("sessions could write the list of trusted projects %s: %s is granted by %s", display.Quote(path),
				display.Quote(rule.Path), rule.Origin)
		}
	}
	return ""
}

// Trust records that the user trusts the project's settings file with the
// content that it has now. Where digest is not empty it must be that of this
// content: what changed since the user was shown what it asks for is not
// trusted. The error is a *NotTrustedError where the file cannot be trusted,
// else the list of trusted projects could not be written.
func (s *Store) Trust(projectDir, digest string) (Project, error) {
	shown := s.Snapshot(projectDir).Project()
	switch {
	case shown.Problem != "":
		return shown, &NotTrustedError{File: shown.File, Reason: shown.Problem}
	case !shown.Exists:
		return shown, &NotTrustedError{File: shown.File, Reason: "it is not the settings file of a project"}
	case digest != "" && digest != shown.Digest:
		return shown, &NotTrustedError{
			File: shown.File, Reason: "it is not the content that was shown: the file has changed", Hint: "look again at what it asks for",
		}
	}
	entry := trust.Project{Path: shown.Dir, Digest: shown.Digest, TrustedAt: time.Now().UTC().Truncate(time.Second)}
	if err := trust.Change(trust.Path(s.host), func(l *trust.List) []trust.Project { return l.With(entry) }); err != nil {
		return shown, err
	}
	now := s.Snapshot(projectDir).Project()
	s.sources.Recheck()
	if !now.Trusted {
		return now, &NotTrustedError{File: now.File, Reason: "the file changed while it was being trusted",
			Hint: "look again at what it asks for"}
	}
	return now, nil
}

// Untrust takes the trust in a project back, whatever its file holds now. That
// it was not trusted is no error.
func (s *Store) Untrust(projectDir string) (Project, error) {
	dir := s.Snapshot(projectDir).Project().Dir
	// Without an entry there is nothing to write, and no reason to make a file.
	if s.listed(dir) {
		if err := trust.Change(trust.Path(s.host), func(l *trust.List) []trust.Project { return l.Without(dir) }); err != nil {
			return Project{}, err
		}
	}
	s.sources.Recheck()
	return s.Snapshot(projectDir).Project(), nil
}

// listed reports whether the list, read anew, has an entry for the project.
func (s *Store) listed(dir string) bool {
	list := s.sources.Trust()
	return len(list.Without(dir)) < len(list.Projects)
}
