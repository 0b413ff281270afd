// Package darwin confines processes with Seatbelt, the sandbox of macOS.
//
// A policy becomes a [Plan] in the sidecar ([Translate]); the stage finds out
// how the kernel spells its paths ([Plan.Resolve]), because a rule on any other
// spelling matches nothing, and writes the profile ([Scene.Profile]). All of
// that is pure, and tested on every system by an evaluator of profiles; files
// whose name ends in _darwin.go make system calls.
//
// The profile's text never holds a path. Paths are parameters beside it, so
// that no name of a file can become a rule, and the text stays the ASCII that
// Apple's compiler wants: it aborts the process on any other byte, even in a
// comment.
package darwin
