// Package owner finds out which process a command belongs to: the agent that has
// started a shell for it. What belongs to one agent shares a sandbox; see
// docs/design/groups.md.
package owner
