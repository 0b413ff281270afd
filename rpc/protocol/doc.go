// Package protocol is the wire vocabulary of sandbox-sidecar: methods, their
// parameters and results, and error codes.
//
// Messages are JSON-RPC 2.0 in the framing of the Language Server Protocol
// ("Content-Length: N\r\n\r\n" and a UTF-8 body). Each method is a value of
// [Request] or [Notification] that ties its name to its types, so that a
// handler or a caller with the wrong type does not compile. cmd/gen generates
// the reference (docs/protocol.md) and the clients' TypeScript and Lua types
// from this package; its doc comments become their texts.
//
// # Compatibility
//
// Within one protocol version, fields and methods are only added. Receivers
// ignore fields that they do not know, except those of terminal/spawn: an older
// sidecar must not drop one that restricts.
package protocol

// Version is the protocol version in the answer to initialize.
const Version = 1

// MaxContentLength bounds one message body, in bytes. A longer one is not read:
// it ends the connection, like a broken header.
const MaxContentLength = 32 << 20

// Empty is an object without fields. An empty array is accepted too, because
// Lua encodes an empty table so.
type Empty struct{}
