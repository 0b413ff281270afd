// Package client speaks the protocol as an editor does.
//
// [Start] runs a sidecar and connects to it; [New] connects over existing
// pipes. [Call] sends a request, [Notify] a notification, [On] and [OnRequest]
// handle what the sidecar sends, and [Client.Quit] ends the conversation.
//
// The reference client for a terminal (clients/tty) and the tests use it. It
// frames messages with jsonrpc2's codec and not with the server's, so that the
// two check each other.
package client
