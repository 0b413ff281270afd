package spawn

import (
	"context"
	"errors"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// telling tells a session something. own is false if it is about a process that
// another session has left.
type telling func(r *running, own bool)

// maxUntold bounds what is kept for a group's next session.
const maxUntold = 256

// tell tells the session of a process something: of the session that it is in,
// else of the latest one. If none runs, the next one is told.
func (g *Group) tell(pid int, what telling) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, own := g.memberOf(pid); m != nil {
		what(m.running, own)
		return
	}
	if len(g.untold) < maxUntold {
		g.untold = append(g.untold, what)
	}
}

// note notes a denial in the audit trail alone: in that of the process's session, as
// tell does.
func (g *Group) note(d platform.Denial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, _ := g.memberOf(d.PID); m != nil {
		m.running.record.Denied(d)
		return
	}
	known := slices.ContainsFunc(g.unnoted, func(other platform.Denial) bool {
		return other.Access == d.Access && other.Target == d.Target && other.Process == d.Process
	})
	if g.noted() && !known && len(g.unnoted) < maxUntold {
		g.unnoted = append(g.unnoted, d)
	}
}

// memberOf finds the member of a process, by its POSIX session and those of its
// ancestors; the latest one if there is no other. Then own is false, unless nobody
// can tell. It is nil if no command runs. g.mu is held.
func (g *Group) memberOf(pid int) (found *member, own bool) {
	if len(g.members) == 0 {
		return nil, false
	}
	find := func(session int) *member {
		i := slices.IndexFunc(g.members, func(m *member) bool {
			return m.call.process != nil && m.call.process.PID() == session
		})
		if i < 0 {
			return nil
		}
		return g.members[i]
	}
	ended := true
	for session := range lifecycle.SessionsOf(pid) {
		if m := find(session); m != nil {
			return m, true
		}
		ended = false
	}
	// A command may be refused something before its start is reported.
	starts := slices.ContainsFunc(g.members, func(m *member) bool { return m.call.process == nil })
	return g.members[len(g.members)-1], ended || starts
}

// each calls a function for each session whose command runs.
func (g *Group) each(what func(*running)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		what(m.running)
	}
}

// connected notes a connection in the audit trail.
func (g *Group) connected(target, process string) {
	g.tell(0, func(r *running, _ bool) { r.record.Connected(target, process) })
}

// ask asks the user of the session that a denial belongs to.
func (g *Group) ask(ctx context.Context, denial Denial) Answer {
	g.mu.Lock()
	m, _ := g.memberOf(denial.PID)
	g.mu.Unlock()
	if m == nil || m.call.ask == nil {
		return platform.AnswerNotNow // of the next session somebody may be asked
	}
	answer := m.call.ask(ctx, denial)
	settled := answer == AnswerWithdrawn && errors.Is(context.Cause(ctx), errSettled)
	if answer.Asked() && !denial.Opened && !settled {
		m.running.record.Answered(denial.Denial, answer)
	}
	return answer
}

// patienceWith is that with the session that a denial belongs to; nil if none runs.
func (g *Group) patienceWith(denial platform.Denial) *patience {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, _ := g.memberOf(denial.PID); m != nil {
		return &m.call.patience
	}
	return nil
}

// groupObserver tells a group's sessions what happens to the group.
type groupObserver Group

// Alarm tells the latest session.
func (o *groupObserver) Alarm(alarm Alarm) {
	(*Group)(o).tell(0, func(r *running, _ bool) { r.protection.raise(alarm) })
}

// Denied is not called: running.denied asks the group first.
func (*groupObserver) Denied(Denial) {}

// Reached tells all sessions, as the limits are of the group.
func (o *groupObserver) Reached(limit Reached) {
	(*Group)(o).each(func(r *running) { r.limits.put(limit) })
}
