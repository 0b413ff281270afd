package linux

import landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"

// loggingABI is Landlock's version from which it logs what it refuses (Linux
// 6.15).
const loggingABI = 7

// logging are the flags by which a session confines itself. Below loggingABI
// there are none, and nothing is logged.
//
// By default Landlock logs what it refuses to the stage, whose canary tries
// just that, and nothing of the programs that it executes. Who reads a
// machine's audit log wants neither: what a session is refused is told to its
// user, who asked for the sandbox, and a program that tries without end would
// fill the log. So nothing is logged but where the sidecar reads it. What a
// program refuses to itself by a domain of its own is not logged in any case:
// with that it could fill the log, and its domain would pass for the session's
// where the leader makes it.
func (r Ruleset) logging() uint32 {
	switch {
	case r.ABI < loggingABI:
		return 0
	case r.Logged:
		return landlock.FlagRestrictSelfLogSameExecOff | landlock.FlagRestrictSelfLogSubdomainsOff | landlock.FlagRestrictSelfLogNewExecOn
	}
	return landlock.FlagRestrictSelfLogSameExecOff | landlock.FlagRestrictSelfLogSubdomainsOff
}
