package proc

import (
	"sync"
	"time"
)

// stuckTimeout is how long no process may make progress before they are
// reported as survivors. Most waits for a disk are shorter. A process that
// waits for a file system which does not answer may wait forever.
const stuckTimeout = 700 * time.Millisecond

// AllStuck reports whether the list is not empty, and each process has waited
// in an uninterruptible system call for long with SIGKILL pending.
func AllStuck(pids []int) bool { return stuck.all(pids) }

// stuck records since when processes have waited in an uninterruptible system
// call with SIGKILL pending. They will never run another instruction of their
// programs. All groups share it, so that none waits twice for the same process.
var stuck stuckProcesses

type stuckProcesses struct {
	mu    sync.Mutex // guards since
	since map[int]time.Time
}

// mostStuck bounds the number of recorded processes that nobody has asked about
// again.
const mostStuck = 4096

// all implements AllStuck.
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
