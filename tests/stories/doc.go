// Package stories tests what a new user sees in the first hour, and that it
// names the way on.
//
// Each file in stories is one: commands that a user types in a project, what
// must be on the screen then, and what works after the user has done what it
// said. What no script can express is in Go.
package stories
