package resolve

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
)

// Host is what the paths of settings are expanded against.
type Host struct {
	// Platform is "linux" or "darwin".
	Platform string
	// Home is the user's home directory; "" if it is not known.
	Home string
	// Account is the home directory in the system's user database, whatever
	// variables say; "" if it is not known or not needed.
	Account string
	// Root is true if sessions run as the system's administrator.
	Root bool
	// Env maps the names of variables to their values.
	Env map[string]string
}

// Places are those of the user.
func (h Host) Places() places.User {
	return places.User{Home: h.Home, Getenv: func(name string) string { return h.Env[name] }}
}

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
