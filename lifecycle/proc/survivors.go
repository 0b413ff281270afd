package proc

import (
	"errors"
	"fmt"
)

// ErrSurvivors means that processes were still alive when the time to kill them
// had run out.
var ErrSurvivors = errors.New("processes survived being killed")

// Survivors is the error that names them. It wraps ErrSurvivors. A process
// outlives SIGKILL in an uninterruptible system call. One with another user's
// rights, such as root's by sudo, is not ours to kill.
type Survivors struct {
	// PIDs are the process ids of the last scan; empty if the processes are
	// only known to exist.
	PIDs []int
}

// Error names the process ids.
func (s *Survivors) Error() string {
	if len(s.PIDs) == 0 {
		return ErrSurvivors.Error()
	}
	return fmt.Sprintf("%v: %v", ErrSurvivors, s.PIDs)
}

// Unwrap gives ErrSurvivors.
func (s *Survivors) Unwrap() error { return ErrSurvivors }
