// Package policy says what a process may do, as pure data.
//
// A [Policy] is the resolved, absolute, platform-neutral form of a user's
// settings for one session: paths by access, network, sockets, environment,
// protected paths. Package settings compiles it, a platform backend turns it
// into a kernel mechanism, and nothing in between changes it. Every rule keeps
// its [Origin], so that a refusal can name the setting that would lift it.
//
// Policies are values: once compiled they are not modified, and they may be
// read from several goroutines.
package policy
