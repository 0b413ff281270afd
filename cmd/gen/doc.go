// Gen writes what is derived from Go declarations: the protocol reference, the
// settings reference and schema, and the types of the editor clients.
//
// It reads the declarations of rpc/protocol and settings together with their
// doc comments, so a comment there is what users and client authors read. "go
// run ./cmd/gen" writes the files, "go run ./cmd/gen -check" fails when one is
// stale, and so does the test of this package.
package main
