// Package subreaper holds each session below a process that adopts its orphans
// (PR_SET_CHILD_SUBREAPER), for machines where no cgroup can be made.
//
// [Open] proves that subreapers work here. [Factory.NewGroup] makes the group of
// one session. [Run] is the subreaper itself. [Ender] ends what the subreapers of
// a dead sidecar hold.
//
// See docs/design/ending-sessions.md.
package subreaper
