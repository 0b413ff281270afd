// Package canary is what a confined process tries in order to prove that its
// supervisor answers, and the names that both sides know: those of the attempts,
// and of the descriptors that the stage passes.
//
// The process tries what the kernel alone would answer otherwise. The sidecar's
// packages answer by the same names and errors.
//
// See docs/design/handshake.md.
package canary
