package lifecycle

import "log/slog"

// Options of a tracker. The zero value tracks, but nothing ends sessions if
// this process is killed, and groups have no directories.
type Options struct {
	// StateDir is the directory of journals and of groups' directories; see
	// StateDir. It must be a real path.
	StateDir string
	// Watchdog is the command line that leads to RunWatchdog; the journal's
	// path is appended. nil: no watchdog. If there is no usable state
	// directory, the journal is in memory for the watchdog.
	Watchdog func() (path string, argv []string)
	// Subreaper is the command line that leads to RunSubreaper (Linux). nil: if
	// no cgroup can be made, only the session id holds a group together.
	Subreaper func() (path string, argv []string)
	// Env is the environment that leads to the user's systemd (XDG_RUNTIME_DIR,
	// DBUS_SESSION_BUS_ADDRESS). If no cgroup can be made otherwise, systemd is
	// asked for a scope (Linux). nil: it is not asked. Empty: its usual socket
	// is tried.
	Env []string
	// Adopt makes this process the parent of its sessions' orphans, and reaps
	// them (Linux).
	Adopt bool
	// Alone declares that this package starts every child of this process, or
	// that the caller waits for it at once. Then other children are reaped,
	// orphans of a killed subreaper are ended, and empty cgroups of dead
	// sidecars are removed (Linux).
	Alone bool
	// Logger gets reports about background work. nil discards them.
	Logger *slog.Logger
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}
