//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"iter"
	"os"
	"sync"
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

func (g *sessionGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	sid := g.sid
	g.mu.Unlock()
	if sid == 0 {
		return 0, nil
	}
	killed, err := endSession(ctx, sid)
	if err != nil {
		err = fmt.Errorf("kill session %d: %w", sid, err)
	}
	return killed, err
}

// endSession kills every process whose session id this is, and what descends from those.
func endSession(ctx context.Context, sid int) (int, error) {
	killed, err := hunt{
		look: func() iter.Seq2[prey, error] {
			return lookIn(func(entry processEntry) bool { return entry.session == sid })
		},
		kill:  killExactly,
		pause: sleep,
	}.converge(ctx)
	return len(killed), err
}

// lookIn finds the living among the roots and their descendants.
func lookIn(root func(processEntry) bool) iter.Seq2[prey, error] {
	return func(yield func(prey, error) bool) {
		table, err := processTable()
		if err != nil {
			yield(prey{}, err)
			return
		}
		for _, found := range living(lineage(table, root)) {
			if !yield(found, nil) {
				return
			}
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
