package linux

import "fmt"

// What a user may have of inotify and fanotify all processes of theirs share: a
// session that takes all of it blinds the tripwires of others, and breaks what
// an editor watches. A user namespace has limits of its own for that
// (namespaces(7), /proc/sys/user), below those of the user.

const inotifyInstances = "max_inotify_instances"

// share is a session's part of what its user has.
func share(whole, part, least int) int { return max(whole/part, min(least, whole/2), 1) }

// notices says how much of the user's inotify a session may take.
func notices(r Ruleset, own outcome) string {
	switch {
	case r.Own == nil || !r.Own.User:
		return "nothing limits how many of the user's inotify instances it takes, as it has no user namespace"
	case own.unlimited != "":
		return "nothing limits how many of the user's inotify instances it takes: " + own.unlimited
	}
	return fmt.Sprintf("it can have %d of the user's inotify instances", r.Own.Limits[inotifyInstances])
}
