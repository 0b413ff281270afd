// Package settings reads what the user wrote and compiles it to a policy.
//
// Settings come in layers: built-in defaults, the user's files, the editor's,
// the project's. A [Store] holds the last good content of each file, watches
// them, and hands out a [Snapshot]: the merged block with the origin of each
// key, which compiles to a policy.Policy for one kind of session. A project's
// file may tighten what the user's layers say and never loosen it.
//
// Bad input never drops a file: each problem is a [Diagnostic] with line and
// column, and the rest of the block counts. Nor does it open anything: if
// nobody knows what a file asks for, that is a [Doubt], and tools do not start.
package settings
