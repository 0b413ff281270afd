package lifecycle

import "log/slog"

// Options of a tracker. The zero value tracks, but nothing is ended when this
// process is killed, and groups have no directories.
type Options struct {
	// StateDir is where journals and directories of groups are kept; see
	// StateDir. It must be a real path.
	StateDir string
	// Watchdog is the command line that leads to RunWatchdog; the journal's
	// path is added to it. nil: no watchdog. Without a state directory, or
	// where that cannot be used, the journal is in memory for the watchdog.
	Watchdog func() (path string, argv []string)
	// Subreaper is the command line that leads to RunSubreaper (Linux). nil:
	// where no cgroup can be made, only the session id holds a group together.
	Subreaper func() (path string, argv []string)
	// Env is the environment that leads to the user's systemd (XDG_RUNTIME_DIR,
	// DBUS_SESSION_BUS_ADDRESS), which is asked for a scope where no cgroup can
	// be made otherwise (Linux). nil: it is not asked. Empty, it is looked for
	// in its usual place.
	Env []string
	// Adopt makes this process the parent of whatever its sessions' processes
	// leave without one, and reaps it (Linux).
	Adopt bool
	// Alone says that every child of this process is started by this package,
	// or waited for at once. Then those that come otherwise are reaped, and
	// what a subreaper leaves that somebody has killed is ended; and empty
	// cgroups of dead sidecars are removed (Linux).
	Alone bool
	// Logger takes what nobody waits for. nil discards it.
	Logger *slog.Logger
}

func (o Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}
