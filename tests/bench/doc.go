//go:build linux

// Command bench measures the sidecar beside what a user would pick instead, in
// one run that lets them take turns, and writes the tables of
// docs/performance.md. A figure means something only as a ratio to a baseline
// of the same run: machines differ, and so do moments.
//
// Each file measures one thing. "make bench" installs the peers first; see
// install-peers.
package main
