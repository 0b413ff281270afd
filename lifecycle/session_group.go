//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"iter"
	"os"
	"sync"
)

// sessionGroup is the group of last resort: every process whose session id is
// the leader's. Job control puts each job into a process group of its own, so
// the leader's process group alone would miss them; the session id holds them
// all until one calls setsid(2).
type sessionGroup struct {
	*groupState
	tracking Tracking

	mu      sync.Mutex // guards the fields below
	sid     int
	session session
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
	led, err := sessionLedBy(pid)
	if err != nil {
		return err
	}
	if err := g.note(led.record()); err != nil {
		return err
	}
	g.sid, g.session = pid, led
	return nil
}

func (g *sessionGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	led := g.session
	if led.id == 0 {
		led.id = g.sid
	}
	g.mu.Unlock()
	if led.id == 0 {
		return 0, nil
	}
	killed, err := led.end(ctx)
	if err != nil {
		err = fmt.Errorf("kill session %d: %w", led.id, err)
	}
	return killed, err
}

// session is what tells the processes of one session from those of a stranger
// who got its number later.
type session struct {
	id        int
	start     string // the leader's start time
	autogroup string // see autogroupID; empty where the system does not tell
}

// sessionLedBy describes the session of a leader that lives.
func sessionLedBy(pid int) (session, error) {
	start, err := startTime(pid)
	if err != nil {
		return session{}, err
	}
	led := session{id: pid, start: start}
	// Only what the leader has from its own setsid(2) tells its processes from
	// those of its parent.
	if autogroup := autogroupID(pid); autogroup != autogroupID(os.Getpid()) {
		led.autogroup = autogroup
	}
	return led, nil
}

func sessionOf(r record) session {
	return session{id: r.Session, start: r.Start, autogroup: r.Autogroup}
}

func (s session) record() record {
	return record{Session: s.id, Start: s.start, Autogroup: s.autogroup}
}

// end kills every process of the session, and what descends from those.
func (s session) end(ctx context.Context) (int, error) {
	killed, err := killLoop{
		look: func() iter.Seq2[processID, error] {
			return lookIn(func(entry processEntry) bool {
				return entry.session == s.id && (s.autogroup == "" || autogroupID(entry.pid) == s.autogroup)
			})
		},
		kill:  killExactly,
		pause: sleep,
	}.converge(ctx)
	return len(killed), err
}

// endProved does so for a session of which only what was written down is known,
// if it can be proved that the number is still the session's. It returns false
// where somebody has the number of whom that cannot be said.
func (s session) endProved(ctx context.Context) (proved bool, err error) {
	if s.id <= 1 || s.id == os.Getpid() {
		return false, nil // never a leader of ours
	}
	if now, err := startTime(s.id); err == nil && now != s.start {
		return true, nil // a session id is not given away while a process of the session lives: all of them were gone
	} else if err != nil && s.autogroup == "" {
		// The leader is gone, and nothing tells its processes from those of a
		// stranger whose leader is gone too.
		inhabited, err := s.inhabited()
		return !inhabited, err
	}
	_, err = s.end(ctx)
	return true, err
}

// inhabited reports whether a process lives that has the session's number.
func (s session) inhabited() (bool, error) {
	table, err := processTable()
	if err != nil {
		return false, err
	}
	for _, entry := range table {
		if entry.session == s.id && !entry.dead {
			return true, nil
		}
	}
	return false, nil
}

// lookIn finds the living among the roots and their descendants.
func lookIn(root func(processEntry) bool) iter.Seq2[processID, error] {
	return func(yield func(processID, error) bool) {
		table, err := processTable()
		if err != nil {
			yield(processID{}, err)
			return
		}
		for _, found := range living(descendants(table, root)) {
			if !yield(found, nil) {
				return
			}
		}
	}
}

func (g *sessionGroup) Tracking() Tracking { return g.warned(g.tracking) }

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
