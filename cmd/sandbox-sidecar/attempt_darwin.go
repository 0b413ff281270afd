package main

// abstractSockets reports whether a socket can have a name that is no path.
const abstractSockets = false

// macOS adds nothing to the attacks of every system.
var (
	systemAttempts map[string]func(argument string) error
	systemProofs   []proof
)
