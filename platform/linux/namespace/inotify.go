package namespace

// All processes of a user share the user's inotify and fanotify instances. A
// session that takes all of them blinds the tripwires of other sessions and the
// user's editor. A user namespace has limits of its own, below those of the user
// (namespaces(7), /proc/sys/user).

// InotifyInstances is the key of Setup.Limits for inotify instances.
const InotifyInstances = "max_inotify_instances"

// share returns a session's part of what its user has: whole/part, but not less
// than least, as long as that is at most half. It is at least 1.
func share(whole, part, least int) int { return max(whole/part, min(least, whole/2), 1) }
