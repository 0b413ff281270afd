package proc

import (
	"sync"
	"time"
)

// stuckTimeout is how long nobody may move before it is said that they have
// survived. Most waits for a disk are shorter. A process that waits for a file
// system which does not answer may wait for ever.
const stuckTimeout = 700 * time.Millisecond

// AllStuck reports whether there are processes in the list, and each has waited
// in an uninterruptible system call for long, with SIGKILL pending.
func AllStuck(pids []int) bool { return stuck.all(pids) }

// stuck remembers since when processes have waited in an uninterruptible system
// call, with the signal that ends them pending: they will never execute another
// instruction of their programs. It is one for all groups, so that nobody waits
// for the same process twice.
var stuck stuckProcesses

type stuckProcesses struct {
	mu    sync.Mutex // guards since
	since map[int]time.Time
}

// mostStuck bounds what is remembered of processes that nobody has looked at
// again.
const mostStuck = 4096

// all reports whether there are processes in the list, and each has been stuck
// for long.
func (s *stuckProcesses) all(pids []int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil || len(s.since) > mostStuck {
		s.since = map[int]time.Time{}
	}
	all := len(pids) > 0
	for _, pid := range pids {
		if !isStuck(pid) {
			delete(s.since, pid)
			all = false
			continue
		}
		if _, known := s.since[pid]; !known {
			s.since[pid] = time.Now()
		}
		all = all && time.Since(s.since[pid]) >= stuckTimeout
	}
	return all
}
