// Package sockets tests which Unix sockets a session can reach: real daemons
// and plain servers outside, by every name and by races. Each has a control in
// which the same attack works without a sandbox. Processes inside a session
// must still reach each other.
package sockets
