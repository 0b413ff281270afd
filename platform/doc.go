// Package platform is the contract between starting a process and an operating
// system's sandbox.
//
// A [Backend] says what the machine can enforce ([Backend.Probe]) and turns a
// policy into a [Confinement]: orders for the stage, which is our own binary,
// re-executed, that confines itself and then execs the target, and what the
// sidecar has to do for it meanwhile. Nothing here degrades in silence: a
// backend that cannot enforce a policy returns an error that wraps
// [ErrUnavailable], a step of confinement that fails keeps the stage from ever
// executing, and what a session's [Enforcement] claims was reported by the
// stage after a canary proved it.
package platform
