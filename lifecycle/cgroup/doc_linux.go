// Package cgroup holds each session in a cgroup of its own (Linux, cgroup v2).
//
// [Open] makes this process's subtree, if need be in a scope that the user's
// systemd delegates, and proves that a child can live in it. [Tree.NewGroup]
// makes a cgroup for one session. [Ender] ends what a dead sidecar has left.
package cgroup
