package stage

import ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

// LoggingABI is the first ABI version of a Landlock that logs refusals (Linux
// 6.15).
const LoggingABI = 7

// logging returns the flags of landlock_restrict_self(2). Nothing is logged
// unless the sidecar reads the log; see docs/design/landlock.md.
func (r Ruleset) logging() uint32 {
	if r.ABI < LoggingABI {
		return 0
	}
	const off = ll.FlagRestrictSelfLogSameExecOff | ll.FlagRestrictSelfLogSubdomainsOff
	if r.Logged {
		return off | ll.FlagRestrictSelfLogNewExecOn
	}
	return off
}
