// Package tripwire detects changes of protected paths that the kernel cannot
// prevent: a name that does not exist yet can be created, and a program outside
// the sandbox can replace a file. [New] starts a [Tripwire], through
// inotify(7), which does not say which process made a change.
//
// All tripwires of a process share one inotify instance, because a user may
// have few (fs.inotify.max_user_instances).
//
// See docs/design/tripwires-and-review.md.
package tripwire
