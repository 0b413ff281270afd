package main

import "github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"

// abstractSockets reports whether a socket can have a name that is no path.
const abstractSockets = false

// macOS adds nothing to the attacks of every system.
var (
	systemAttempts map[string]func(argument string) error
	systemProofs   []proof
)

func (s *targets) system(*policy.Policy) {}
