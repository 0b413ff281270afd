// Package localhost decides which services of this machine a session with the
// network reaches by TCP.
//
// [Guard] answers connect(2) to the machine's own addresses. It connects the
// caller's own socket, or refuses: no connection passes through the sidecar.
// [Notes] remembers which sockets the sessions of a project listen with.
//
// See docs/design/localhost.md.
package localhost
