package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/textfile"
)

// A session can make whatever starts the next one set HOME or XDG_CONFIG_HOME: a
// line in .env is enough. So these variables cannot take settings away, as
// docs/design/settings-places.md explains.

// userFiles are the user's settings files, each list lowest first.
type userFiles struct {
	// own are those of the home directory in the user database, or the one that
	// the caller names.
	own []string
	// named are those that HOME or XDG_CONFIG_HOME name, if they are others.
	named []string
}

// userFilesOf finds the settings files of a user; userPath is Options.UserPath.
func userFilesOf(userPath string, h resolve.Host) userFiles {
	if userPath != "" {
		return userFiles{own: []string{filepath.Clean(userPath)}}
	}
	own, named := places.User{Home: ownHome(h.Account)}.Settings(), h.Places().Settings()
	switch {
	case len(own) == 0: // the user database does not know the user
		return userFiles{own: named}
	case len(named) == 0 || samePlaces(own, named):
		return userFiles{own: own}
	}
	return userFiles{own: own, named: named}
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

// decides reports whether the home directory of the user database decides what
// ~ means and which list of trusted projects counts: if settings are there, such a
// list, or a note that settings have counted. What cannot be read is there.
func decides(h resolve.Host) bool {
	home := ownHome(h.Account)
	if home == "" {
		return false
	}
	user := places.User{Home: home}
	if there(user.Counted()) {
		return true
	}
	for _, file := range append(user.Settings(), user.Trust()) {
		data, _, err := textfile.Read(file)
		if err != nil && textfile.Missing(err) {
			continue
		}
		state := source.State{File: file, Exists: true}
		if err != nil || file == user.Trust() {
			return true
		}
		state.Good, state.Problem = document.Decode(data, h.Platform, source.OwnerOf(file))
		if state.Problem != nil || anySettings([]source.State{state}) {
			return true
		}
	}
	return false
}

// all lists every file, lowest first.
func (u userFiles) all() []string { return slices.Concat(u.own, u.named) }

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

// userLayer are the user's files as sessions in one project find them. They are read
// once: a file that another program replaces must not be two things at a time.
type userLayer struct {
	states []source.State // lowest first
	// counting are the files that have settings and count as the user's. One that is
	// in doubt is among them if settings have counted there before. Where they lead
	// is not looked up: their file system may not answer.
	counting []string
	// gone says that settings have counted before, and that none do now.
	gone bool
}

// userLayer judges the user's files for sessions in a project; "" if there is none.
func (s *Store) userLayer(view *resolve.View, projectDir string) userLayer {
	own, named := s.statesOf(s.users.own), s.statesOf(s.users.named)
	if s.options.UserPath != "" {
		return userLayer{states: own}
	}
	var j userLayer
	add := func(state source.State) {
		if anySettings([]source.State{state}) {
			j.counting = append(j.counting, state.File)
		}
	}
	for _, state := range own {
		add(state)
	}
	if j.counting != nil {
		if len(named) > 0 {
			named = onlyTightening(named, "your settings are in "+filepath.Dir(filepath.Dir(s.users.own[0])))
		}
		j.states = slices.Concat(own, named)
		return j
	}
	for i, state := range named {
		why, counts := s.doubtful(view, state, projectDir)
		if counts {
			add(state)
		}
		if why != "" {
			why += "; settings that decide are in ~/.config, or linked there"
			named[i] = onlyTightening([]source.State{state}, why)[0]
		}
	}
	if j.gone = s.notes.anyCounted() && j.counting == nil; j.gone {
		own[len(own)-1].Problem = s.notes.gone
	}
	j.states = slices.Concat(own, named)
	return j
}

// Gone says that settings have counted before, and that none do now; "" if that
// is not so.
func (s *Store) Gone() string {
	if !s.userLayer(resolve.NewView(s.fs), "").gone {
		return ""
	}
	return s.notes.gone.Message
}

// configOf is the directory of configuration that a settings file is in.
func configOf(view *resolve.View, file string) resolve.Target {
	return view.Resolve(filepath.Dir(filepath.Dir(file)))
}

// linkDirs are the directories of the symlinks on the way to a target.
func linkDirs(target resolve.Target) (list []string) {
	for _, link := range target.Links {
		list = append(list, link.Dir)
	}
	return list
}

// doubtful says why a session may have made a settings file that a variable
// names; "" if none is known to. A link from a directory of the user's into a
// repository is the user's own: people keep their settings in one. counts: they
// are the user's settings nevertheless, as far as they only tighten.
func (s *Store) doubtful(view *resolve.View, state source.State, projectDir string) (why string, counts bool) {
	target, config := view.Resolve(state.File), configOf(view, state.File)
	known, any := s.notes.counted(config.Path), s.notes.anyCounted()
	switch {
	case errors.Is(target.Err, fsguard.ErrNoAnswer):
		return "", true // whose it is shows once it can be read
	case any && !known:
		// Sessions have been confined by other settings. A path has many names, and
		// the sidecar's own directories are writable for sessions in part, so no
		// list of places would do.
		return "no settings have counted there before", false
	case target.Err != nil, !target.Exists && state.Exists: // as below /proc/PID/root
		return "where its path leads is not known", known
	case !target.Exists:
		return "", true
	}
	s.mu.Lock()
	projects := append(slices.Clone(s.asked), projectDir)
	s.mu.Unlock()
	home := view.Resolve(s.host.Account).Path
	on := append(linkDirs(target), config.Path, target.Path)
	around := "" // why, if it is in the project alone that holds the home directory
	for _, dir := range projects {
		project := view.Resolve(dir).Path
		if dir == "" || !slices.ContainsFunc(on, func(at string) bool { return policy.Contains(project, at) }) {
			continue
		}
		why := "it is in the project " + display.Quote(project)
		if s.host.Account == "" || !policy.Contains(project, home) {
			return why, known
		}
		around = why
	}
	if slices.ContainsFunc(append(linkDirs(config), config.Path), func(at string) bool {
		return compile.InRepository(view, at, home)
	}) {
		return "it is in a git repository", known
	}
	info, err := fsguard.Lstat(target.Path)
	if err != nil {
		return "its owner is not known", known
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return "it is another user's", known
	}
	if !known { // else it was there before, and sessions have found it read-only
		for _, at := range on {
			if dir := s.notes.written(at); dir != "" {
				return "a session could write " + display.Quote(dir), false
			}
		}
	}
	return around, true
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
		list[i].Limited = why // what is written there later only tightens, too
		if state.Good != nil {
			list[i].Good, list[i].Bound = nothing, state.Good
		}
	}
	return list
}
