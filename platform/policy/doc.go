// Package policy defines what a process may do, as pure data.
//
// A [Policy] is the resolved, absolute, platform-neutral form of a user's
// settings for one session: paths by access, network, sockets, environment,
// protected paths. Package settings compiles it and a platform backend
// translates it; nothing in between changes it. Every rule keeps its [Origin],
// so that a denial can name the setting that would allow it.
//
// Policies are immutable values. They may be read from several goroutines.
package policy
