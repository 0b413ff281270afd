// Package groupinit is the first process inside a sandbox that several commands
// share. It starts the commands, because whoever is not inside cannot enter a
// Landlock domain; see docs/design/groups.md.
package groupinit
