// Package tripwire notices changes of paths that are to stay as they are, where
// the kernel cannot be told to keep them so: names that do not exist yet, and
// what a program outside of the sandbox replaces. It is told by inotify(7),
// which does not say who made a change.
//
// All tripwires of a process share one inotify instance, because a user may
// have few (fs.inotify.max_user_instances).
package tripwire
