// Package lifecycle holds processes together that must die together, and
// watches the editor's own life.
//
// A [Tracker] is opened once; it finds out by trying what the machine offers
// and makes a [Group] for each session. A process joins its group before it
// runs anything of the user's, so whatever it starts is in the group too.
// [Group.Kill] returns when the group is empty, or with [ErrSurvivors]: it
// never reports an end that did not happen.
//
// Groups come in several mechanisms. A cgroup (Linux, cgroup v2) cannot be left
// by what Landlock confines, and is killed by the kernel at once; where the own
// cgroup is not ours to divide, as in a login session, this process first moves
// into a scope that the user's systemd delegates to it. Where that fails too, a
// subreaper holds the group (Linux): our own binary as the leader's parent, see
// [RunSubreaper], which adopts whatever loses its parent. Its work is certain
// for sessions that the kernel can put into a signal domain and keep from
// signalling it, see [SignalDomainGroup]. A process group is what remains
// elsewhere: it is found again by its session id, and a process that calls
// setsid(2) is lost from it, which Tracking.Guarantee says.
//
// On macOS nothing like a cgroup can be had. A session's processes are
// recognised by a fingerprint in the sandbox that they inherit and cannot take
// off, which the kernel tells of any process ([SessionFingerprint], [Marked]);
// where they have no sandbox, by whom the kernel remembers as their parents.
// Either way they are looked for and killed until nobody is found.
package lifecycle
