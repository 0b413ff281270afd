// Package review finds which files changed during a session that programs
// outside the sandbox act upon by themselves: git hooks, package scripts,
// editor tasks. [Take] records the state at the start; [State.Findings]
// compares.
//
// See docs/design/tripwires-and-review.md.
package review
