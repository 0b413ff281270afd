// Package overlay makes the private overlays over the caches of toolchains.
//
// A session sees the real cache with the changes of sessions on top. The changes
// are kept in a directory of the sidecar's. The kernel allows one overlay for
// each such directory, so one process of the user, the holder ([RunHolder]),
// mounts it once. Every session gets a copy of that mount ([message.Clone]).
//
// A sidecar has a connection to the holder, or starts it ([Client]). The holder
// ends when the last sidecar does. [List] and [Clear] are for people.
//
// See docs/design/cache-overlays.md.
package overlay
