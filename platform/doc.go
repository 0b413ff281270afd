// Package platform is the contract between starting a process and an operating
// system's sandbox.
//
// A [Backend] reports what the machine can enforce ([Backend.Probe]) and turns
// a policy into a [Confinement]. The confinement holds orders for the stage and
// the sidecar's part. The stage is our own binary, re-executed: it confines
// itself and then executes the target ([Launch] in the sidecar, package handshake
// in the stage).
//
// Nothing degrades silently. A backend that cannot enforce a policy returns an
// error that wraps [ErrUnavailable]. A failed step of confinement prevents the
// stage from executing anything. An [Enforcement] claims only what a canary has
// proved.
//
// See docs/design/handshake.md.
package platform
