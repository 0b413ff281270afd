// Package settings reads the user's settings and compiles them to a policy.
//
// Settings come in layers: built-in defaults, those of the organisation that
// administers the machine, the user's files, the editor's, the project's. What
// the organisation requires bounds the result.
//
// [Open] returns a [Store], which keeps the last good content of each file and
// watches it. [Store.Snapshot] returns the settings of one moment, and
// [Snapshot.Compile] the policy for one kind of session.
// [Snapshot.Explain] and [Snapshot.Suggest] answer questions about it. A
// project's file may tighten the user's settings; unless the user trusts it, it
// cannot loosen them.
//
// # Mistakes
//
// A mistake never drops a file. It is a [Diagnostic] with line and column, and
// the rest of the block counts. A mistake opens nothing either: if it is
// unclear what a file asks for, there is a [Doubt], and tools do not start.
//
// # Design
//
// See docs/design: settings-pipeline.md, managed-settings.md, trust.md,
// git-repositories.md and unknown-settings-open-nothing.md.
package settings
