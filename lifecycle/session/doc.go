// Package session finds and kills the processes of one session id (setsid(2)),
// and tells them from processes of another session that gets the number later.
package session
