package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
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
		Hint: "put them back, or do as the message says",
	}
	if name, value := h.Places().SettingsFrom(); value != "" && view.Resolve(value).Path != own.Path {
		n.gone.Hint = fmt.Sprintf("%s is %s; a session may have set it: if you have not, unset it", name,
			display.Quote(value))
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

// SessionsWrote reports whether sessions could write a directory, given its real
// path, or one above it, as far as that was noted.
func (s *Store) SessionsWrote(dir string) bool { return s.notes.written(dir) != "" }

// wroteAgents says why a session could have written a set for an agent below a
// directory of settings, given their real paths; "" if none is known to.
func (n notes) wroteAgents(view *resolve.View, settings, file string) string {
	if n.user.State() == "" {
		return ""
	}
	own := view.Resolve(filepath.Dir(filepath.Dir(n.user.Agents()))).Path
	switch config := filepath.Dir(settings); {
	case config == own || n.counted(config):
		return "" // no session finds it writable
	case n.anyCounted():
		return "no settings have counted in " + display.Quote(config) + " before"
	}
	if dir := n.written(file); dir != "" {
		return "a session could write " + display.Quote(dir)
	}
	return ""
}

// add makes a note about a directory, given its real path. A state directory that
// cannot be written has none, which keeps no session from starting.
func (n notes) add(dir, about string) {
	path := filepath.Join(dir, places.Note(about))
	if there(path) || fsguard.MkdirAll(dir, 0o700) != nil {
		return
	}
	_ = fsguard.Create(path, []byte(about+"\n"), 0o600)
}

// forget removes the notes of directories in which settings have counted, and that
// a session can write. In those of kept it finds the settings read-only.
func (n notes) forget(kept []string, writable func(dir string) bool) {
	entries, err := fsguard.ReadDir(n.user.Counted(), resolve.MaxNames)
	if err != nil {
		return // mostly there are none
	}
	for _, entry := range entries {
		note := filepath.Join(n.user.Counted(), entry.Name)
		data, _, err := textfile.Read(note)
		dir, whole := strings.CutSuffix(string(data), "\n")
		if err == nil && whole && !slices.Contains(kept, dir) && writable(dir) {
			_ = os.Remove(note)
		}
	}
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
	var kept []string
	for _, file := range s.userLayer(view, projectDir).counting {
		dir := configOf(view, file).Path
		kept = append(kept, dir)
		n.add(n.user.Counted(), dir)
	}
	for _, file := range slices.Concat(s.host.Places().Settings(), n.user.Settings()) {
		kept = append(kept, configOf(view, file).Path)
	}
	writable := []string{p.Project}
	for _, rule := range p.Rules {
		if rule.Access.Has(policy.Write) && !private(p, rule.Path) {
			writable = append(writable, rule.Path)
		}
	}
	n.forget(kept, func(dir string) bool {
		return slices.ContainsFunc(writable, func(at string) bool {
			return policy.Contains(at, dir) || policy.Contains(dir, at)
		})
	})
	if p.Project != "" {
		n.add(n.user.Projects(), p.Project)
	}
	for _, path := range writable[:min(len(writable), maxWritten)] {
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
