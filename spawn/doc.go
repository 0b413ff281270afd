// Package spawn starts confined processes on terminals and moves their bytes.
//
// A [Spawner] is handed a policy and decides none. [Spawner.Start] returns a
// [Session] once its leader was executed under a sandbox that it confirmed from
// inside; the session then belongs to the caller, who gives it a [Sink] with
// [Session.Begin] and ends it with [Session.Close]. [Spawner.Foreground] runs a
// program on the caller's own terminal instead.
//
// Each session has three goroutines, all gone once Done is closed: one reads
// the terminal, one types into it, one waits for the leader, kills what it left
// behind and reports the end.
package spawn
