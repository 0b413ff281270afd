// Package settings keeps the user's settings, and changes them.
//
// Settings come in layers: built-in defaults, those of the organisation that
// administers the machine, the user's files, the editor's, the project's. What
// the organisation requires bounds the result.
//
// [Open] returns a [Store], which keeps the last good content of each file and
// watches it. [Store.Snapshot] returns the settings of one moment. Package compile
// makes a policy of them, and package explain answers questions about that.
// [Store.Trust], [Store.Allow] and [Store.Grant] change what the settings say.
//
// # Mistakes
//
// A mistake never drops a file. It is a [Diagnostic] with line and column, and
// the rest of the block counts. A mistake opens nothing either: if it is
// unclear what a file asks for, there is a [compile.Doubt], and tools do not start.
//
// # Design
//
// See docs/design: settings-pipeline.md, managed-settings.md, trust.md,
// git-repositories.md and unknown-settings-open-nothing.md.
package settings
