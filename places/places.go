// Package places says where the sidecar keeps its files, and where its user's
// settings are. It looks at no file: whether a place exists, or is fit, its user
// finds out.
//
// It follows the XDG base directory specification, which says to ignore a
// variable that is no absolute path.
package places

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// name is that of the sidecar's directories.
const name = "sandbox-sidecar"

// IsName reports whether a name is that of a directory of the sidecar's: one of
// these, or one for temporary files.
func IsName(dir string) bool { return dir == name || strings.HasPrefix(dir, name+"-") }

// User is whose places they are. The zero value has none.
type User struct {
	// Home is the home directory; "" if it is not known.
	Home string
	// Getenv returns the value of a variable; nil if no variable counts.
	Getenv func(name string) string
}

// Of is the user of an environment, whose home is HOME.
func Of(getenv func(name string) string) User { return User{Home: getenv("HOME"), Getenv: getenv} }

// OfList is the user of an environment of "NAME=value" entries.
func OfList(env []string) User {
	return Of(func(name string) string {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

// base is the directory that a variable names, else one below home; "" if there
// is neither.
func (u User) base(variable string, below ...string) string {
	if u.Getenv != nil {
		if dir := u.Getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
	}
	if len(below) == 0 || !filepath.IsAbs(u.Home) {
		return ""
	}
	return filepath.Join(append([]string{u.Home}, below...)...)
}

// in is a path in a directory; "" if that is "".
func in(dir string, names ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, names...)...)
}

// Runtime is the directory for what ends with the login: journals, sockets and
// private directories; "" if the environment names none. The directory above it
// is the user's, who may have opened it to others.
func (u User) Runtime() string { return in(u.base("XDG_RUNTIME_DIR"), name) }

// State is the directory of what the sidecar keeps; "" if it has none, as for
// all of the following.
func (u User) State() string { return in(u.base("XDG_STATE_HOME", ".local", "state"), name) }

// Run is in the place of Runtime if that cannot be used.
func (u User) Run() string { return in(u.State(), run) }

const run = "run"

// Closed is the directory that no session may read if journals are in dir: that
// which has the list of trusted projects, too.
func Closed(dir string) string {
	if filepath.Base(dir) == run {
		return filepath.Dir(dir)
	}
	return dir
}

// Trust is the list of trusted projects.
func (u User) Trust() string { return in(u.State(), "trust.json") }

// Told is a file that exists once the user was told a note of that name.
func (u User) Told(note string) string { return in(u.State(), "told-"+note) }

// Counted has a note for each directory in which settings have counted; see
// Note. It is there once there were some.
func (u User) Counted() string { return in(u.State(), "settings-counted") }

// Written has a note for each directory that sessions could write; see Note.
func (u User) Written() string { return in(u.State(), "sessions-wrote") }

// Projects has a note for each project that sessions had; see Note.
func (u User) Projects() string { return in(u.State(), "session-projects") }

// Note is the name of a note about a directory, given its real path.
func Note(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:16])
}

// Refusals is the directory of what sessions of each project were refused last.
func (u User) Refusals() string { return in(u.State(), "refusals") }

// Met is the directory of what reviews have met in each directory.
func (u User) Met() string { return in(u.State(), "reviewed") }

// LastAllowed is what the last changes of settings by "allow" have replaced.
func (u User) LastAllowed() string { return in(u.State(), "allowed.json") }

// Seatbelt is what is known of the compiler of macOS's sandbox.
func (u User) Seatbelt() string { return in(u.State(), "seatbelt.json") }

// KeeperLog is the log of the processes that keep sandboxes for links.
func (u User) KeeperLog() string { return in(u.State(), "keeper.log") }

// History is the directory of what programs in sessions remember.
func (u User) History() string { return in(u.State(), "history") }

// HistoryOf is the history of the sessions in a project, by its real path.
func (u User) HistoryOf(project string) string { return in(u.History(), HistoryName(project)) }

// HistoryName is the name of a project's history: readable, and unique.
func HistoryName(project string) string {
	sum := sha256.Sum256([]byte(project))
	const most = 40
	name := []byte(filepath.Base(project))
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), most)]) + "-" + hex.EncodeToString(sum[:8])
}

// Reports is the directory of the files that shells without a window report to.
func (u User) Reports() string { return in(u.State(), "reports") }

// Audit is the directory of the audit trail in a state directory.
func Audit(state string) string { return in(state, "audit") }

// Cache is the directory of what can be made again.
func (u User) Cache() string { return in(u.base("XDG_CACHE_HOME", ".cache"), name) }

// Overlays is the directory of the overlays over caches of toolchains.
func (u User) Overlays() string { return in(u.Cache(), "overlays") }

// Shells is the directory of the links that are shells, if the user names no
// other.
func (u User) Shells() string { return in(u.base("XDG_DATA_HOME", ".local", "share"), name, "shells") }

// ShellsElsewhere has a symlink to each other directory of such links.
func (u User) ShellsElsewhere() string { return in(u.State(), "shells") }

// Settings are the user's settings files, lowest first: that of Zed, and the
// sidecar's own.
func (u User) Settings() []string {
	config := u.base("XDG_CONFIG_HOME", ".config")
	if config == "" {
		return nil
	}
	return []string{filepath.Join(config, zed, "settings.json"), filepath.Join(config, name, "settings.json")}
}

// StateVariables are the variables that say where Runtime, State and Run are.
func StateVariables() []string { return []string{"HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} }

// SettingsFrom is the variable that says where the settings are, and its value.
func (u User) SettingsFrom() (name, value string) {
	const config = "XDG_CONFIG_HOME"
	if dir := u.base(config); dir != "" {
		return config, dir
	}
	return "HOME", u.Home
}

// Agents is the directory of the user's own sets for agents, beside the settings.
func (u User) Agents() string { return in(u.base("XDG_CONFIG_HOME", ".config"), name, "agents") }

const zed = "zed"

// IsZeds reports whether a settings file is in Zed's directory.
func IsZeds(file string) bool { return filepath.Base(filepath.Dir(file)) == zed }

// HoldsOnlySettings reports whether a settings file is in a directory that holds
// only settings.
func HoldsOnlySettings(file string) bool {
	dir := filepath.Base(filepath.Dir(file))
	return dir == zed || dir == name
}
