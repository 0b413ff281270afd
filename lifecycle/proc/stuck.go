package proc

import (
	"sync"
	"time"
)

// stuckTimeout is how long no process may make progress before they are
// reported as survivors. Most waits for a disk are shorter. A process that
// waits for a file system which does not answer may wait forever. The time in
// which somebody waits for a processor, for memory or for a disk is not counted:
// then the machine is busy, and what seems stuck only waits for its turn. But a
// fifth of the time always counts: a machine may be busy all day.
const (
	stuckTimeout = 700 * time.Millisecond
	leastCalm    = 5 // the share is one in this many
)

// AllStuck reports whether the list is not empty, and each process has waited
// in an uninterruptible system call for long with SIGKILL pending.
func AllStuck(pids []int) bool { return stuck.all(pids) }

// stuck records since when processes have waited in an uninterruptible system
// call with SIGKILL pending. They will never run another instruction of their
// programs. All groups share it, so that none waits twice for the same process.
var stuck stuckProcesses

type stuckProcesses struct {
	mu    sync.Mutex // guards since
	since map[int]moment
}

// moment is a time, and how long somebody had been stalled by then.
type moment struct {
	at      time.Time
	stalled time.Duration
}

// calm is how long after m nobody was stalled, until now. Several causes stall at
// once on a busy machine, so at least one in leastCalm counts.
func (m moment) calm(now moment) time.Duration {
	took := now.at.Sub(m.at)
	return max(took/leastCalm, took-(now.stalled-m.stalled))
}

// mostStuck bounds the number of recorded processes that nobody has asked about
// again.
const mostStuck = 4096

// all implements AllStuck.
func (s *stuckProcesses) all(pids []int) bool {
	return s.allAt(pids, isStuck, func() moment { return moment{time.Now(), stalled()} })
}

// allAt is all, with what it asks the kernel.
func (s *stuckProcesses) allAt(pids []int, isStuck func(pid int) bool, clock func() moment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since == nil || len(s.since) > mostStuck {
		s.since = map[int]moment{}
	}
	now := sync.OnceValue(clock)
	all := len(pids) > 0
	for _, pid := range pids {
		if !isStuck(pid) {
			delete(s.since, pid)
			all = false
			continue
		}
		since, known := s.since[pid]
		if !known {
			since = now()
			s.since[pid] = since
		}
		all = all && since.calm(now()) >= stuckTimeout
	}
	return all
}
