// Package gitwrite changes the configuration of a git repository for a session
// that cannot write it.
//
// See docs/design/git-config.md.
package gitwrite
