package namespace

// What a user may have of inotify and fanotify all processes of theirs share: a
// session that takes all of it blinds the tripwires of others, and breaks what
// an editor watches. A user namespace has limits of its own for that
// (namespaces(7), /proc/sys/user), below those of the user.

const InotifyInstances = "max_inotify_instances"

// share is a session's part of what its user has.
func share(whole, part, least int) int { return max(whole/part, min(least, whole/2), 1) }
