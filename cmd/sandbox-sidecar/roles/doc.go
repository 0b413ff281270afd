//go:build unix

// Package roles runs this binary in its other roles: the stage, the subreaper,
// the domain killer, the watchdog and the helper of fsguard. Only the sidecar
// starts them.
//
// A role starts while the program is initialised, before main, because a session
// waits for its stage. Go initialises packages in the order of their paths, as
// soon as their imports are initialised. This package therefore comes before
// those that only the sidecar needs, with their tables and regular expressions
// (settings, the JSON schema, the protocol). It must import what the roles need
// and nothing else.
package roles
