// Package stage is the stage on Linux: it confines itself with Landlock, a filter
// of system calls, and namespaces if it was started in them.
//
// [ConfineSelf] puts a [Ruleset] in force and reports what is enforced. The
// ruleset ([Translate]) is a pure function of the policy and of Landlock's ABI
// version. Whatever a kernel lacks is in the report.
//
// With what it imports, this package is the wall: docs/design/wall.md says in
// which order to read it. It imports nothing that only the sidecar needs.
//
// Files whose name ends in _linux.go make system calls; all others are pure.
package stage
