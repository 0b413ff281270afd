package reserve

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// processReserve is how many processes and threads of the user's limit
// (RLIMIT_NPROC, getrlimit(2)) sessions leave to this program.
const processReserve = 64

// size is at most a quarter of a small limit.
func size(limit uint64) uint64 { return min(processReserve, limit/4) }

// lowered is held for writing while this process has the limit of sessions, and
// for reading while it starts a child that must not have it.
var lowered sync.RWMutex

// Leave calls start while the soft limit of processes is lower by the
// reserve. The kernel compares the number of the user's processes with the
// limit of whoever forks. So a child that was started meanwhile, and its
// descendants, cannot take the reserve. If the child is in a new user namespace,
// that remembers the limit for all its processes (Linux 5.14). For a moment this
// process has no reserve either: Go tries for a fifth of a second to start a
// thread.
func Leave(start func() error) error {
	lowered.Lock()
	defer lowered.Unlock()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("find the limit of processes: %w", err)
	}
	if limit.Cur == unix.RLIM_INFINITY {
		return start()
	}
	less := limit
	less.Cur -= size(limit.Cur)
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &less); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	defer func() {
		// It cannot fail: the hard limit is the same.
		_ = unix.Setrlimit(unix.RLIMIT_NPROC, &limit)
	}()
	return start()
}

// Seal makes the limit of processes final for this process and what it starts.
// A session's leader was started by Leave, and could otherwise raise the soft
// limit again.
func Seal() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("find the limit of processes: %w", err)
	}
	limit.Max = limit.Cur
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return fmt.Errorf("limit processes: %w", err)
	}
	return nil
}

// SealLeader does what Seal does to a child that Leave has just started, which
// runs another program already. One that has changed its limit by then, or has
// ended, stays as it is: it may have taken the reserve in that moment.
func SealLeader(pid int) {
	lowered.RLock()
	defer lowered.RUnlock()
	var limit, now unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return
	}
	started := unix.Rlimit{Cur: limit.Cur - size(limit.Cur), Max: limit.Max}
	if unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &now) == nil && now == started {
		_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: started.Cur, Max: started.Cur}, nil)
	}
}

// Keep calls start while no other child is started by Leave, so that the new one
// has this process's own limit.
func Keep(start func() error) error {
	lowered.RLock()
	defer lowered.RUnlock()
	return start()
}
