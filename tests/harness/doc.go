// Package harness drives the real sidecar binary as an editor does, for tests.
//
// A [World] is a home, a project and a directory outside, all temporary. An
// [Editor] is a sidecar process with that home. It starts sessions and gathers
// what they print. A [Scene] is a world with a hostile program, a [Terminal] a
// command on a terminal. The harness knows nothing of the sidecar's inside: it
// builds the binary once and runs it.
//
// The worlds lie in the system's temporary directory, which default settings
// open to sessions. So the settings of [Settings] name their read-write system
// paths and leave that directory out. A test of the defaults themselves uses
// [Defaults] and [OutsideDefaults].
package harness
