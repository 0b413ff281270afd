// Package lifecycle holds the processes of a session together, so that they end
// together, and watches the editor's own life.
//
// [Open] makes a [Tracker], which finds out by trying what the machine offers.
// It makes a [Group] for each session. A process joins its group before it runs
// anything of the user's, so its descendants are in the group too. [Group.Kill]
// returns when the group is empty, or with [ErrSurvivors].
//
// Several mechanisms hold a group together:
//
//   - a cgroup (package cgroup)
//   - a subreaper (package subreaper), with a signal domain or without
//   - the session id (package session), as the last resort
//   - on macOS, a fingerprint in the sandbox ([SessionFingerprint], [Marked])
//
// Tracking.Guarantee says whether a process can escape.
//
// [RunWatchdog] is the process that ends the sessions of a sidecar that was
// killed. [Sweep] ends what is left if the watchdog was killed too.
//
// See docs/design/ending-sessions.md.
package lifecycle
