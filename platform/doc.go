// Package platform is the contract between starting a process and an operating system's sandbox.
//
// A [Backend] says what the machine can enforce ([Backend.Probe]) and turns a policy into a [Confinement] for the stage: our own
// binary, re-executed, which confines itself and then execs the target. Nothing here degrades in silence: a backend that cannot
// enforce a policy returns an error that wraps [ErrUnavailable], a step of confinement that fails keeps the stage from ever
// executing, and what a session's [Enforcement] claims was reported by the stage after a canary proved it.
package platform
