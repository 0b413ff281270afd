// Package ordinary tests that what people do all day goes on inside a sandbox
// with default settings.
//
// Each file in rows is something they do: a script that must run to its end
// without a sandbox, with one, and in one whose network is off. The table of
// README.md says the same, and a test compares the two. What cannot be told as
// a script, an interactive shell, is in Go.
package ordinary
