package settings

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// A session can make whatever starts the next one set HOME or XDG_CONFIG_HOME: a
// line in .env is enough. So these variables cannot take settings away, as
// docs/design/settings-places.md explains.

// userFiles are the user's settings files, each list lowest first.
type userFiles struct {
	// own are those of the home directory in the user database, or the one that
	// the caller names.
	own []string
	// kept are those that were found by XDG_CONFIG_HOME before; none if nothing
	// is noted.
	kept []string
	// current: XDG_CONFIG_HOME names kept now, too.
	current bool
	// named are those that HOME or XDG_CONFIG_HOME name, if they are others.
	named []string
	// note is where kept was noted, if named may be noted there; else "".
	note string
	// noteErr is why the note cannot be read.
	noteErr error
}

// userFilesOf finds the settings files of a user; userPath is Options.UserPath.
func userFilesOf(userPath string, h resolve.Host) userFiles {
	if userPath != "" {
		return userFiles{own: []string{filepath.Clean(userPath)}}
	}
	account := ownHome(h.Account)
	own, named := places.User{Home: account}.Settings(), h.Places().Settings()
	switch {
	case len(own) == 0: // the user database does not know the user
		return userFiles{own: named}
	case len(named) == 0 || samePlaces(own, named):
		named = nil
	}
	users := userFiles{own: own, named: named}
	note := places.User{Home: account}.SettingsNote()
	if samePlaces([]string{h.Home}, []string{account}) {
		users.note = note
	}
	config, err := readNote(note)
	switch {
	case err != nil:
		users.noteErr = err
	case config != "":
		users.kept = places.SettingsIn(config)
		if users.current = samePlaces(users.kept, named); users.current {
			users.named = nil
		}
	}
	return users
}

// ownHome returns the home directory of the user database; "" if it is another
// user's and closed to this one, such as /root for a container's root or one that
// somebody has made in the place of /nonexistent. No settings of this user are
// there.
func ownHome(account string) string {
	info, err := fsguard.Stat(account)
	if err != nil {
		return account
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(stat.Uid) != os.Geteuid() {
		if _, err := fsguard.Lstat(filepath.Join(account, ".config")); errors.Is(err, fs.ErrPermission) {
			return ""
		}
	}
	return account
}

// all lists every file, lowest first.
func (u userFiles) all() []string { return slices.Concat(u.own, u.kept, u.named) }

var errNotPath = errors.New("it holds no path")

// readNote returns the directory of configuration that is noted; "" if there is
// no note. Only the user can have written it, since no session can.
func readNote(path string) (string, error) {
	info, err := fsguard.Lstat(path)
	switch {
	case err != nil && textfile.Missing(err):
		return "", nil
	case err == nil && !info.Mode().IsRegular():
		err = textfile.ErrNotRegular
	case err == nil:
		err = textfile.CheckPrivate(info)
	}
	if err != nil {
		return "", err
	}
	data, _, err := textfile.Read(path)
	if err != nil {
		return "", err
	}
	config := strings.TrimSuffix(string(data), "\n")
	if !trust.IsCleanPath(config) {
		return "", errNotPath
	}
	return config, nil
}

// keep notes where the user's settings are, so that no variable hides them.
func (s *Store) keep(named []source.State) {
	config := filepath.Dir(filepath.Dir(s.users.named[0]))
	if !anySettings(named) || !trust.IsCleanPath(config) {
		return
	}
	err := fsguard.MkdirAll(filepath.Dir(s.users.note), 0o700)
	if err == nil {
		err = fsguard.Create(s.users.note, []byte(config+"\n"), 0o600)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		s.log.Warn("where the settings are could not be noted: another XDG_CONFIG_HOME would hide them", "error", err)
	}
}

// samePlaces reports whether two lists lead to the same files.
func samePlaces(a, b []string) bool {
	if slices.Equal(a, b) {
		return true
	}
	view := resolve.NewView(resolve.OS)
	return slices.EqualFunc(a, b, func(a, b string) bool {
		x, y := view.Resolve(a), view.Resolve(b)
		return x.Err == nil && y.Err == nil && x.Path == y.Path
	})
}

// userStates are the states of the user's files, lowest first, as they count for
// a snapshot that has none yet.
func (s *Store) userStates(snapshot *Snapshot) []source.State {
	own, kept, named := s.statesOf(s.users.own), s.statesOf(s.users.kept), s.statesOf(s.users.named)
	home := filepath.Dir(filepath.Dir(s.users.all()[0]))
	switch {
	case len(kept)+len(named) == 0 && s.users.noteErr == nil:
	case anySettings(own):
		why := "your settings are in " + home
		kept, named = onlyTightening(kept, why), onlyTightening(named, why)
	case s.users.noteErr != nil:
		own[len(own)-1] = lost(own, "the note about your settings cannot be read: "+textfile.Cause(s.users.noteErr))
	case s.users.current: // removed files ask for nothing
	case anySettings(kept):
		named = onlyTightening(named, "your settings are in "+filepath.Dir(filepath.Dir(kept[0].File)))
	case len(kept) > 0:
		own[len(own)-1] = lost(own, "your settings were in "+filepath.Dir(filepath.Dir(kept[0].File))+
			"; write new ones here, or {} for none")
		named = onlyTightening(named, "your settings were elsewhere")
	case s.users.note == "":
	default:
		if what := s.changeable(snapshot, slices.Concat(own, named), named); what != "" {
			named = onlyTightening(named, what+"; write your settings in "+home)
		} else {
			s.keep(named)
		}
	}
	return slices.Concat(own, kept, named)
}

// lost is a file in the place of settings that are known to have been. Nothing
// starts.
func lost(own []source.State, why string) source.State {
	return source.State{File: own[len(own)-1].File, Lost: true, Problem: &document.Diagnostic{
		Line: 1, Column: 1, Severity: document.SeverityError, Message: why,
	}}
}

// changeable says how others than the user could have written one of the files;
// "" if they could not. The snapshot has everything but the user's files, and
// all are those.
func (s *Store) changeable(snapshot *Snapshot, all, files []source.State) string {
	trial := snapshot.with(nil)
	trial.user = slices.Concat(snapshot.user, all)
	view := trial.view()
	// What sessions would write under these very settings. Their directories for
	// temporary files are open to sessions of other settings, too.
	writable := trial.run(view, trial.projectDir, asIgnored, document.KindTool, nil).writable
	for _, dir := range s.projects(snapshot) {
		writable.add(view.Resolve(dir).Path, policy.Write)
	}
	for _, state := range files {
		if !state.Exists {
			continue
		}
		if !ownedByCaller(state.File) {
			return "another user owns the file"
		}
		target := view.Resolve(state.File)
		inside := writable.at(target.Path).Has(policy.Write)
		for _, link := range target.Links {
			inside = inside || writable.at(link.Dir).Has(policy.Write)
		}
		if inside || target.Err != nil {
			return "sessions may write the file"
		}
	}
	return ""
}

// projects are the directories in which sessions may have been, as far as that
// is known.
func (s *Store) projects(snapshot *Snapshot) []string {
	s.mu.Lock()
	list := slices.Clone(s.asked)
	s.mu.Unlock()
	if snapshot.projectDir != "" {
		list = append(list, snapshot.projectDir)
	}
	known, _ := trust.Read(places.User{Home: s.host.Account}.Trust())
	for _, project := range slices.Concat(s.sources.Trust().Projects, known.Projects) {
		list = append(list, project.Path)
	}
	return list
}

// ownedByCaller reports whether a file belongs to the caller, or to root.
func ownedByCaller(path string) bool {
	info, err := fsguard.Stat(path)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

func (s *Store) statesOf(files []string) []source.State {
	var list []source.State
	for _, file := range files {
		list = append(list, s.sources.State(file))
	}
	return list
}

// anySettings reports whether one of the files has settings for us, or may have.
// Zed's file is there for Zed, too.
func anySettings(states []source.State) bool {
	return slices.ContainsFunc(states, func(state source.State) bool {
		return state.Doubt() != nil || state.Good.HasSettings() ||
			state.Exists && source.OwnerOf(state.File) == document.Sidecar
	})
}

// nothing is the content of a file that asks for nothing.
var nothing = &document.Block{}

// onlyTightening is how files count that must not loosen anything: they bound
// the finished policy. why is for people.
func onlyTightening(states []source.State, why string) []source.State {
	list := slices.Clone(states)
	for i, state := range list {
		if state.Good != nil {
			list[i].Good, list[i].Bound, list[i].Limited = nothing, state.Good, why
		}
	}
	return list
}

// requirementsOf is what a file requires. One of the user's that only tightens
// has no say in what a project's file has none in.
func requirementsOf(state source.State) *document.Block {
	if state.Limited == "" {
		return state.Bound
	}
	block := *state.Bound
	block.Agent, block.Spans = nil, maps.Clone(block.Spans) // Zed's permissions only grant
	for _, key := range []string{"on_denied", "process_tracking", shellKey, auditKey, auditRequiredKey} {
		for _, of := range []string{
			key, document.KeyOf(document.KindTool, key), document.KeyOf(document.KindTerminal, key),
		} {
			delete(block.Spans, of)
		}
	}
	return &block
}
