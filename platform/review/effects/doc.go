// Package effects finds what a session has stored in git's repositories for a
// later command outside the sandbox to put in place: branches, tags, the stash,
// the index. [Take] records the refs at the start; [State.Effects] compares them,
// and asks git what the new ones hold.
//
// See docs/design/tripwires-and-review.md.
package effects
