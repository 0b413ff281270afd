package settings

import (
	"path/filepath"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// notes are what the sidecar remembers of earlier sessions, in the state of the
// home directory in the user database: where settings have counted, and what
// sessions could write. No variable moves them, and no session writes them.
// Nothing is remembered for a user whom the database does not know.
type notes struct {
	user places.User
	// here: HOME names that home directory, too. Another HOME may be that of a
	// test or of another user, and leaves no notes where there are none.
	here bool
	// gone is what is wrong if settings have counted, and none do.
	gone *document.Diagnostic
}

func notesOf(h resolve.Host) notes {
	n := notes{user: places.User{Home: ownHome(h.Account)}}
	if n.user.State() == "" {
		return n
	}
	view := resolve.NewView(resolve.OS)
	own, named := view.Resolve(n.user.Home), view.Resolve(h.Places().Home)
	n.here = own.Exists && own.Path == named.Path
	n.gone = &document.Diagnostic{
		Line: 1, Column: 1, Severity: document.SeverityError,
		Message: "settings that counted are gone: check HOME, XDG_CONFIG_HOME; run `sandbox-sidecar init` or remove " +
			display.Quote(n.user.Counted()),
	}
	return n
}

// there reports whether there is a note, or a directory of notes.
func there(path ...string) bool {
	if path[0] == "" {
		return false
	}
	_, err := fsguard.Lstat(filepath.Join(path...))
	return err == nil
}

// anyCounted reports whether settings have ever counted.
func (n notes) anyCounted() bool { return there(n.user.Counted()) }

// counted reports whether settings have counted in a directory, given its real
// path.
func (n notes) counted(config string) bool { return there(n.user.Counted(), places.Note(config)) }

// written is the directory at or above a real path that sessions could write; ""
// if none is known.
func (n notes) written(path string) string {
	if !there(n.user.Written()) {
		return ""
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		if there(n.user.Written(), places.Note(dir)) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// wroteAgents says why a session could have written a set for an agent below a
// directory of settings, given their real paths; "" if none is known to.
func (n notes) wroteAgents(view *resolve.View, settings, file string) string {
	if n.user.State() == "" {
		return ""
	}
	own := view.Resolve(filepath.Dir(filepath.Dir(n.user.Agents()))).Path
	if config := filepath.Dir(settings); config == own || n.counted(config) {
		return "" // no session finds it writable
	}
	if dir := n.written(file); dir != "" {
		return "a session could write " + display.Quote(dir)
	}
	return ""
}

// add makes a note. A state directory that cannot be written has none, which
// keeps no session from starting.
func (n notes) add(dir, about string) {
	path := filepath.Join(dir, places.Note(about))
	if there(path) || fsguard.MkdirAll(dir, 0o700) != nil {
		return
	}
	_ = fsguard.Create(path, nil, 0o600)
}

// maxWritten bounds the directories that are noted for one session.
const maxWritten = 256

// Confines notes that a session of a project is about to be confined by a
// policy: where the user's settings are, and what the session can write. Whatever
// names other settings later does not take these away, and what the session makes
// loosens nothing.
func (s *Store) Confines(projectDir string, p *policy.Policy) {
	n := s.notes
	if n.user.State() == "" || !n.here && !n.anyCounted() {
		return
	}
	view := resolve.NewView(s.fs)
	for _, file := range s.counting(view, projectDir) {
		n.add(n.user.Counted(), configOf(view, file).Path)
	}
	writable := []string{p.Project}
	for _, rule := range p.Rules {
		if rule.Access.Has(policy.Write) && len(writable) < maxWritten && !private(p, rule.Path) {
			writable = append(writable, rule.Path)
		}
	}
	for _, path := range writable {
		if info, err := fsguard.Lstat(path); filepath.IsAbs(path) && err == nil && info.IsDir() {
			n.add(n.user.Written(), path)
		}
	}
}

// private reports whether a session has a directory of its own in the place of a
// path.
func private(p *policy.Policy, path string) bool {
	_, own := p.TemporaryAt(path)
	return own || p.Inside(path) != path
}
