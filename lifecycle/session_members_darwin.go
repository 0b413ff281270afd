package lifecycle

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Process states as in <sys/proc.h>.
const szomb = 5

// sessionMembers lists the living processes whose session id is sid, zombies not counted.
func sessionMembers(sid int) ([]int, error) {
	procs, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	var members []int
	for _, proc := range procs {
		pid := int(proc.Proc.P_pid)
		if proc.Proc.P_stat == szomb {
			continue
		}
		session, err := unix.Getsid(pid)
		if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPERM) {
			continue // ended since, or another user's
		}
		if err != nil {
			return nil, err
		}
		if session == sid {
			members = append(members, pid)
		}
	}
	return members, nil
}
