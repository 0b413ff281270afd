// Package darwin confines processes with Seatbelt, the sandbox of macOS.
//
// [Translate] turns a policy into a [Plan] in the sidecar. In the stage,
// [Plan.Resolve] finds out how the kernel spells the plan's paths, because a
// rule with any other spelling matches nothing, and [Scene.Profile] writes the
// profile. All of that is pure and tested on every system by an evaluator of
// profiles. Files named _darwin.go make system calls.
//
// Paths are parameters beside the profile's text and never in it. So no file
// name can become a rule, and the text stays ASCII: Apple's compiler aborts the
// process on any other byte.
//
// See docs/design/seatbelt.md.
package darwin
