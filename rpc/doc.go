// Package rpc serves the protocol to one editor.
//
// # Entry points
//
// [New] makes a [Server] from its [Options], and [Server.Serve] talks to the
// editor until the conversation ends. Package rpc/protocol defines the
// messages, package presentation their texts.
//
// # Files
//
// A message passes stream.go (frames), wire.go (JSON-RPC), objects.go (what
// package jsonrpc2 sees of it), conn.go (the connection), dispatch.go (typed
// handlers) and the handler: lifecycle.go, spawn.go, terminal.go, settings.go or
// project.go. Frames leave through writer.go; sink.go sends what sessions
// produce.
//
// # Concurrency
//
// One goroutine reads messages in order. It carries out notifications itself,
// which keeps a session's input in order, so their handlers must not block.
// Each request runs on a goroutine of its own, so that a slow one delays no
// other. One goroutine writes, so that frames never mix. The reading goroutine
// never waits for the editor; see docs/design/flow-control.md.
//
// A fault in one message is answered or logged. Only a broken frame ends the
// connection.
package rpc
