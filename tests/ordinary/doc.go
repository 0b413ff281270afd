// Package ordinary tests that everyday programs work inside a sandbox with
// default settings.
//
// Each file in rows is one piece of everyday work: a script that must succeed
// without a sandbox, with one, and in one without network. Each file in tools is
// a tool that needs no setting, or the one that is suggested. docs/tools.md has
// both tables, and tests compare them.
// An interactive shell, which no script can express, is in Go.
package ordinary
