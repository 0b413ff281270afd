//go:build unix

package session

import (
	"context"
	"errors"
	"iter"
	"os"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Session is what tells the processes of one session from those of a stranger
// who got its number later.
type Session struct {
	// ID is the leader's process id.
	ID int `json:"id"`
	// Start is the leader's start time.
	Start string `json:"start"`
	// Autogroup is what autogroupID says of the leader; empty if the system
	// does not tell.
	Autogroup string `json:"autogroup,omitempty"`
}

// SessionLedBy describes the session of a leader that lives.
func Of(pid int) (Session, error) {
	start, err := proc.StartTime(pid)
	if err != nil {
		return Session{}, err
	}
	led := Session{ID: pid, Start: start}
	// Only what the leader has from its own setsid(2) tells its processes from
	// those of its parent.
	if autogroup := proc.AutogroupID(pid); autogroup != proc.AutogroupID(os.Getpid()) {
		led.Autogroup = autogroup
	}
	return led, nil
}

// kindSession is the kind of sessions in a journal. The key is the id.
const kind = "session"

// Record describes the session in a journal.
func (s Session) Record() journal.Record { return journal.NewRecord(kind, strconv.Itoa(s.ID), s) }

// EndedSession says that a session needs no ending any more.
func Ended(id int) journal.Record { return journal.Ended(kind, strconv.Itoa(id)) }

// sessionEnder ends the sessions of a dead sidecar that can be proved to be its
// own.
var Ender = journal.Ender{Kind: kind, End: endSessions}

func endSessions(ctx context.Context, records []journal.Record, where journal.Place) (alone int, err error) {
	switch {
	case where.OtherBoot:
		return 0, nil // every process of that time is dead
	case !where.Same:
		return len(records), nil
	}
	var failures []error
	for _, r := range records {
		var s Session
		proved := false
		if err := r.Decode(&s); err == nil {
			proved, err = s.endProved(ctx)
			failures = append(failures, err)
		}
		if !proved {
			alone++
		}
	}
	return alone, errors.Join(failures...)
}

// End kills every process of the session, and what descends from those.
func (s Session) End(ctx context.Context) (int, error) {
	killed, err := proc.KillLoop{
		Find: func() iter.Seq2[proc.ID, error] {
			return proc.LivingDescendants(func(entry proc.Entry) bool {
				return entry.Session == s.ID && (s.Autogroup == "" || proc.AutogroupID(entry.PID) == s.Autogroup)
			})
		},
		Kill:  proc.Kill,
		Pause: proc.Sleep,
	}.Run(ctx)
	return len(killed), err
}

// endProved does so for a session of which only what was written down is known,
// if it can be proved that the number is still the session's. It returns false
// where somebody has the number of whom that cannot be said.
func (s Session) endProved(ctx context.Context) (proved bool, err error) {
	if s.ID <= 1 || s.ID == os.Getpid() {
		return false, nil // never a leader of ours
	}
	if now, err := proc.StartTime(s.ID); err == nil && now != s.Start {
		return true, nil // a session id is not given away while a process of the session lives: all of them were gone
	} else if err != nil && s.Autogroup == "" {
		// The leader is gone, and nothing tells its processes from those of a
		// stranger whose leader is gone too.
		inhabited, err := s.inhabited()
		return !inhabited, err
	}
	_, err = s.End(ctx)
	return true, err
}

// inhabited reports whether a process lives that has the session's number.
func (s Session) inhabited() (bool, error) {
	table, err := proc.Table()
	if err != nil {
		return false, err
	}
	for _, entry := range table {
		if entry.Session == s.ID && !entry.Dead {
			return true, nil
		}
	}
	return false, nil
}
