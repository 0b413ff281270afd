// Package sockets tests which Unix sockets a session can reach: real daemons
// and plain servers outside, by every name and by races, each with a control in
// which the same attack works without a sandbox; and that what runs inside a
// session talks to itself as ever.
package sockets
