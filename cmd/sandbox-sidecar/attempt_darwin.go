package main

// abstractSockets says that sockets can have names that are no paths.
const abstractSockets = false

// Beside what every system has, nothing is tried here.
var (
	systemAttempts map[string]func(argument string) error
	systemProofs   []proof
)
