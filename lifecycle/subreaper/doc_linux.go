// Package subreaper holds each session below a process that adopts its orphans
// (PR_SET_CHILD_SUBREAPER), for machines that allow no cgroup.
//
// [Open] proves that subreapers work here. [Factory.NewGroup] makes the group
// of one session. [Run] is the subreaper itself. [Ender] ends the sessions of a
// dead sidecar's subreapers.
//
// See docs/design/ending-sessions.md.
package subreaper
