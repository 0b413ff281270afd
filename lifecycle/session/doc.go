// Package session finds and kills the processes of one session id (setsid(2)),
// and tells them from those of a stranger who got the number later.
package session
