// Package control tells other processes of the user what a process that starts
// sessions runs, and runs commands for them in the sandboxes that sessions share.
// Each such process listens on a Unix socket below the state
// directory; see package usersocket for who may connect. Nobody in a session may.
//
// A connection carries one request. Whatever is no request ends it.
package control
