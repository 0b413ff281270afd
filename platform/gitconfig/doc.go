// Package gitconfig reads git's configuration files as git does.
//
// See docs/design/git-repositories.md.
package gitconfig
