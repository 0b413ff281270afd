// Package canary is what a confined process tries in order to prove that its
// supervisor answers, and what both sides know for that.
//
// The process tries what the kernel alone would answer otherwise. The sidecar's
// packages answer by the same names and errors.
//
// See docs/design/handshake.md.
package canary
