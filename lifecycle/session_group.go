//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
)

// sessionGroup is the group of last resort: every process with the leader's
// session id. Job control puts each job into a process group of its own, so the
// leader's process group alone would miss them. The session id holds all
// processes until one calls setsid(2).
type sessionGroup struct {
	*groupState
	tracking Tracking

	mu      sync.Mutex // guards the fields below
	sid     int
	session session.Session
}

func (g *sessionGroup) Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error) {
	process, err := proc.StartLeader(path, argv, attr)
	if err != nil {
		return nil, err
	}
	if err := g.add(process.PID()); err != nil {
		proc.GiveUp(process)
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
	led, err := session.Of(pid)
	if err != nil {
		return err
	}
	if err := g.note(led.Record()); err != nil {
		return err
	}
	g.sid, g.session = pid, led
	return nil
}

func (g *sessionGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	led := g.session
	if led.ID == 0 {
		led.ID = g.sid
	}
	g.mu.Unlock()
	if led.ID == 0 {
		return 0, nil
	}
	killed, err := led.End(ctx)
	if err != nil {
		err = fmt.Errorf("kill session %d: %w", led.ID, err)
	}
	return killed, err
}

func (g *sessionGroup) Tracking() Tracking { return g.warned(g.tracking) }

func (g *sessionGroup) Close() error {
	g.mu.Lock()
	sid := g.sid
	g.mu.Unlock()
	if sid != 0 {
		if err := g.note(session.Ended(sid)); err != nil {
			return err
		}
	}
	return g.giveBack()
}
