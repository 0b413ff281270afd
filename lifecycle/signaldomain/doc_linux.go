// Package signaldomain kills a session by one call that no process can outrun
// (Linux 6.12).
//
// The session's leader enters a Landlock domain ([Enter]) and starts the domain
// killer in it ([RunDomainKiller]). The subreaper holds the other end of the
// killer's socket ([Killer]).
//
// See docs/design/signal-domain.md.
package signaldomain
