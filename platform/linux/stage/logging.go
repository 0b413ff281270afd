package stage

import ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

// loggingABI is the first ABI version of a Landlock that logs refusals (Linux
// 6.15).
const loggingABI = 7

// silence returns the flags of landlock_restrict_self(2) with which nothing of a
// session is logged; see docs/design/landlock.md.
func (r Ruleset) silence() uint32 {
	if r.ABI < loggingABI {
		return 0
	}
	return ll.FlagRestrictSelfLogSameExecOff | ll.FlagRestrictSelfLogSubdomainsOff
}
