// Package linux is the sidecar's part of the backend for Linux. The stage's is in
// package stage.
//
// [Backend.Confine] turns a policy into a confinement: it finds out what this
// machine has, plans the ruleset, and supervises the session for which it is in
// force. Denials, allowed hosts and Unix sockets are answered by the packages
// below.
//
// Files whose name ends in _linux.go make system calls; all others are pure.
package linux
