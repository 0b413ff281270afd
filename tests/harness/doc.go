// Package harness drives the real sidecar binary as an editor does, for tests.
//
// A [World] is a home, a project and a place outside, all temporary. An
// [Editor] is a sidecar process with that home; it starts sessions and gathers
// what they print. Nothing here knows the inside of the sidecar: it is built
// once and run.
//
// The worlds lie in the system's temporary directory, which default settings
// open to sessions. So the settings of [Settings] name their read-write system
// paths and leave that directory out; a test of the defaults themselves uses
// [Defaults] and [OutsideDefaults].
package harness
