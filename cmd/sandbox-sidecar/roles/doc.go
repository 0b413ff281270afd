// Package roles starts the other processes that this binary is: the stage, the
// subreaper, the domain killer, the watchdog. Nobody is to call them by hand.
//
// It does so while the program is being initialised, before main, because a
// session waits for its stage: Go initialises packages as soon as what they
// import is, in the order of their paths, so that this one comes before those
// that only the sidecar needs, with their tables and regular expressions
// (settings, the JSON schema, the protocol). It therefore imports what the
// roles need and nothing else.
package roles
