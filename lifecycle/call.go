//go:build unix

package lifecycle

import (
	"context"
	"iter"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// Call is one command of a group whose init adopts all orphans. Its processes
// are those of the command's POSIX session, and what descends from them. A
// process that has made a session of its own and whose parent has ended is not
// known to belong to any call.
type Call struct {
	// Leader is the command's process id, and the id of its session; 0 means all
	// commands of the group.
	Leader int
	// Init is the process id of the group's init.
	Init int
}

// End kills the call's processes, and returns how many it had to kill. If ctx
// ends first, the error wraps a *Survivors.
func (c Call) End(ctx context.Context) (killed int, err error) {
	members := c.members()
	dead, err := proc.KillLoop{
		Find: func() iter.Seq2[proc.ID, error] {
			return func(yield func(proc.ID, error) bool) {
				table, err := proc.Table()
				if err != nil {
					yield(proc.ID{}, err)
					return
				}
				for _, found := range members.living(table) {
					if !yield(found, nil) {
						return
					}
				}
			}
		},
		Kill:  proc.Kill,
		Pause: proc.Sleep,
	}.Run(ctx)
	return len(dead), err
}

// Left counts the call's living processes.
func (c Call) Left() (int, error) {
	table, err := proc.Table()
	if err != nil {
		return 0, err
	}
	return len(c.members().living(table)), nil
}

// LeftBeside counts the living processes of a group that belong to none of the
// calls with these leaders.
func (c Call) LeftBeside(leaders []int) (int, error) {
	table, err := proc.Table()
	if err != nil {
		return 0, err
	}
	inside := proc.Descendants(table, func(entry proc.Entry) bool { return entry.Parent == c.Init })
	known := proc.Descendants(inside, func(entry proc.Entry) bool {
		return slices.Contains(leaders, entry.PID) || slices.Contains(leaders, entry.Session)
	})
	return len(proc.Living(inside)) - len(proc.Living(known)), nil
}

// callMembers finds a call's processes in several tables.
type callMembers struct {
	call Call
	// sessions are the POSIX sessions of all that were found. Only a process of the
	// call can have made them.
	sessions map[int]bool
}

func (c Call) members() callMembers {
	return callMembers{call: c, sessions: map[int]bool{c.Leader: true}}
}

// living finds the call's processes among the group's, so that a number that was
// given to a process outside cannot be meant. A process that an earlier table had
// in a session of its own is found without its parent, too, which may have ended
// first; and so is what it has forked since.
func (m callMembers) living(table []proc.Entry) []proc.ID {
	inside := proc.Descendants(table, func(entry proc.Entry) bool { return entry.Parent == m.call.Init })
	found := proc.Descendants(inside, func(entry proc.Entry) bool {
		return m.call.Leader == 0 || entry.PID == m.call.Leader || m.sessions[entry.Session]
	})
	for _, entry := range found {
		m.sessions[entry.Session] = true
	}
	return proc.Living(found)
}

// maxAncestors bounds the ancestors of a process that are looked at.
const maxAncestors = 32

// SessionsOf yields the POSIX sessions of a process and of its ancestors, as far as
// they live.
func SessionsOf(pid int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for range maxAncestors {
			entry, err := proc.Find(pid)
			if pid <= 1 || err != nil || !yield(entry.Session) {
				return
			}
			pid = entry.Parent
		}
	}
}

// Sessions are the POSIX sessions that have processes.
func Sessions() (map[int]bool, error) {
	table, err := proc.Table()
	if err != nil {
		return nil, err
	}
	sessions := make(map[int]bool, len(table))
	for _, entry := range table {
		sessions[entry.Session] = true
	}
	return sessions, nil
}
