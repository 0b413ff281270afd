//go:build unix

// Gen writes the files that are derived from Go declarations: the protocol
// reference, the settings reference and schema, and the types of the editor
// clients.
//
// It reads the declarations of rpc/protocol and settings with their doc
// comments: users and client authors read those comments. "go run ./cmd/gen"
// writes the files. "go run ./cmd/gen -check" and the test of this package fail
// if one is out of date.
package main
