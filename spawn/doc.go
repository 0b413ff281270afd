// Package spawn starts confined processes on terminals and moves their bytes.
//
// # Entry points
//
// A [Spawner] is given a policy in each [Request], and decides nothing about
// it. [Spawner.Start] returns a [Session] once its leader was executed inside a
// sandbox that proved itself. The caller gives the session a [Sink] with
// [Session.Begin], and ends it with [Session.Close]. [Spawner.Foreground] runs
// a program on the caller's own terminal instead. [Spawner.Probe] says what
// this machine can enforce.
//
// # Files
//
// start.go holds the phases of a start, in order; docs/design/spawn.md explains
// them. standby.go starts stages in advance. session.go owns a session on a
// terminal of its own, and running.go the end of every session. output.go,
// inputs.go, pipes.go and gate.go move bytes.
//
// # Concurrency
//
// Each session has goroutines that read the terminal, type into it, report
// alarms, report denials, and wait for the end. All of them end with the
// session.
package spawn
