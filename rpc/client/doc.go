// Package client speaks the protocol as an editor does.
//
// It serves the reference client for a terminal (clients/tty) and the tests,
// and it frames messages by jsonrpc2's own codec, not by the server's, so that
// the two check each other.
package client
