//go:build linux

// Command bench compares the sidecar with the programs that a user would pick
// instead, in one run in which they take turns, and writes the tables of
// docs/performance.md. Only the ratio to a baseline of the same run means
// something, because machines and moments differ.
//
// Each file measures one thing. "make bench" installs the peers first; see
// install-peers.
package main
