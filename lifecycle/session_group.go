//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// sessionGroup is the group of last resort: every process whose session id is the leader's. Job control puts each job into a process
// group of its own, so the leader's process group alone would miss them; the session id holds them all until one calls setsid(2).
type sessionGroup struct {
	*belongings
	tracking Tracking

	mu  sync.Mutex // guards sid
	sid int
}

func (g *sessionGroup) Start(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	process, err := Start(path, argv, attr)
	if err != nil {
		return nil, err
	}
	if err := g.add(process.PID()); err != nil {
		giveUp(process)
		return nil, err
	}
	return process, nil
}

func (g *sessionGroup) add(pid int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sid != 0 {
		return fmt.Errorf("add process %d: group has leader %d already", pid, g.sid)
	}
	start, err := startTime(pid)
	if err != nil {
		return err
	}
	if err := g.note(record{Session: pid, Start: start}); err != nil {
		return err
	}
	g.sid = pid
	return nil
}

// killInterval is the pause between two looks at a session that is dying; a killed process is gone within a millisecond unless
// it sits in an uninterruptible system call.
const killInterval = 2 * time.Millisecond

func (g *sessionGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	sid := g.sid
	g.mu.Unlock()
	if sid == 0 {
		return 0, nil
	}
	killed := map[int]bool{}
	for {
		// A process that forks between the look and the kill leaves a child for the next look: only a look that finds nobody ends it.
		alive, err := sessionMembers(sid)
		if err != nil {
			return len(killed), fmt.Errorf("list processes of session %d: %w", sid, err)
		}
		if len(alive) == 0 {
			return len(killed), nil
		}
		for _, pid := range alive {
			if unix.Kill(pid, unix.SIGKILL) == nil {
				killed[pid] = true
			}
		}
		select {
		case <-ctx.Done():
			return len(killed), fmt.Errorf("kill session %d: %d left: %w", sid, len(alive), ErrSurvivors)
		case <-time.After(killInterval):
		}
	}
}

func (g *sessionGroup) Tracking() Tracking { return g.tracking }

func (g *sessionGroup) Close() error {
	g.mu.Lock()
	sid := g.sid
	g.mu.Unlock()
	if sid != 0 {
		if err := g.note(record{Ended: sid}); err != nil {
			return err
		}
	}
	return g.giveBack()
}
