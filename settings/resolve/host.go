package resolve

import (
	"cmp"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
)

// Host is what the paths of settings are expanded against.
type Host struct {
	// Platform is "linux" or "darwin".
	Platform string
	// Home is the home directory that ~ means, and in which keys, dotfiles and
	// settings of other programs are looked for; "" if it is not known.
	Home string
	// Account is the home directory in the system's user database, whatever
	// variables say; "" if it is not known or not needed.
	Account string
	// Decided says that Home is Account, whatever HOME says; see Decide.
	Decided bool
	// Named is the home directory that HOME names, if Decided.
	Named string
	// Root is true if sessions run as the system's administrator.
	Root bool
	// Env maps the names of variables to their values.
	Env map[string]string
}

// Places are those that the variables name. A session can have made whatever
// starts the next one set them, so nothing there loosens anything; see Kept.
func (h Host) Places() places.User {
	return places.User{Home: cmp.Or(h.Named, h.Home), Getenv: h.Getenv}
}

// Kept are the places of what can loosen, such as the list of trusted projects.
// Once Decided, no variable moves them.
func (h Host) Kept() places.User {
	if h.Decided {
		return places.User{Home: h.Home}
	}
	return h.Places()
}

// Homes are the directories in which the user may have keys: Home, and others
// that the user database or HOME names.
func (h Host) Homes() []string {
	var list []string
	for _, home := range []string{h.Home, h.Account, h.Named} {
		if home != "" && !slices.Contains(list, home) {
			list = append(list, home)
		}
	}
	return list
}

// Decide returns the host with Account in the place of what HOME names.
func (h Host) Decide() Host {
	h.Named, h.Home, h.Decided = h.Home, h.Account, true
	h.Env = maps.Clone(h.Env)
	h.Env["HOME"] = h.Account
	return h
}

// Getenv is the value of a variable; "" if it is not set.
func (h Host) Getenv(name string) string { return h.Env[name] }

// NewHost returns the host for an environment of "NAME=value" entries. An empty
// home is HOME from it, else that of the system's user database.
func NewHost(platform, home string, env []string) Host {
	h := Host{Platform: platform, Home: home, Root: os.Geteuid() == 0, Env: map[string]string{}}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			h.Env[name] = value
		}
	}
	if h.Home == "" {
		h.Home = h.Env["HOME"]
	}
	if !filepath.IsAbs(h.Home) {
		if current, err := user.Current(); err == nil {
			h.Home = current.HomeDir
		}
	}
	if !filepath.IsAbs(h.Home) {
		h.Home = ""
	}
	return h
}
