//go:build unix

package session

import (
	"context"
	"iter"
	"os"
	"strconv"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Session identifies a session, also after its number was given to another.
type Session struct {
	// ID is the leader's process id.
	ID int `json:"id"`
	// Start is the leader's start time.
	Start string `json:"start"`
	// Autogroup is what proc.AutogroupID returned for the leader; empty if the
	// system does not report it.
	Autogroup string `json:"autogroup,omitempty"`
}

// Of describes the session of a living leader.
func Of(pid int) (Session, error) {
	start, err := proc.StartTime(pid)
	if err != nil {
		return Session{}, err
	}
	led := Session{ID: pid, Start: start}
	// An autogroup that the leader shares with this process does not tell the
	// session's processes from ours. Only one of its own setsid(2) does.
	if autogroup := proc.AutogroupID(pid); autogroup != proc.AutogroupID(os.Getpid()) {
		led.Autogroup = autogroup
	}
	return led, nil
}

// kind is the kind of sessions in a journal. The key is the id.
const kind = "session"

// Record describes the session in a journal.
func (s Session) Record() journal.Record { return journal.NewRecord(kind, strconv.Itoa(s.ID), s) }

// Ended says in a journal that a session needs no ending any more.
func Ended(id int) journal.Record { return journal.Ended(kind, strconv.Itoa(id)) }

// Ender ends the sessions of a dead sidecar, if it can prove that they are its
// own.
var Ender = journal.ProcessEnder(kind, func(ctx context.Context, r journal.Record) (proved bool, err error) {
	var s Session
	if err := r.Decode(&s); err != nil {
		return false, err
	}
	return s.endProved(ctx)
})

// End kills every process of the session, and their descendants.
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

// endProved ends a session that only a journal describes, if the number is
// still the session's. It returns false if that can be neither proved nor
// refuted, and kills nothing then.
func (s Session) endProved(ctx context.Context) (proved bool, err error) {
	if s.ID <= 1 || s.ID == os.Getpid() {
		return false, nil // never a leader of ours
	}
	if now, err := proc.StartTime(s.ID); err == nil && now != s.Start {
		return true, nil // the kernel reuses a session id only when no process of the session is left
	} else if err != nil && s.Autogroup == "" {
		// The leader is gone. Nothing tells the session's processes from those
		// of another session whose leader is gone too.
		inhabited, err := s.inhabited()
		return !inhabited, err
	}
	_, err = s.End(ctx)
	return true, err
}

// inhabited reports whether a living process has the session's number.
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
