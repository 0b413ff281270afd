package spawn

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// telling tells a session something. own is false if it is about a process that
// another session has left.
type telling func(r *running, own bool)

// maxUntold bounds what is kept of each kind of event for a group's next session.
const maxUntold = 256

// waiting is what happens while no session runs, for the next one. What does not fit
// is counted, so that no process hides one kind of event behind another.
type waiting struct {
	untold  map[string][]telling // by the kind of event, as the audit trail names it
	unnoted []platform.Denial    // for the audit trail alone, each once
	more    map[string]int       // events of each kind that did not fit
	unread  int                  // denials for the audit trail alone that did not fit
}

// kinds are those of the events that wait, in the order in which they are told.
var kinds = []string{audit.Refused, audit.Connected, audit.Review}

// add adds so many events, or counts them.
func (w *waiting) add(kind string, count int, what telling) {
	if len(w.untold[kind]) >= maxUntold {
		if w.more == nil {
			w.more = map[string]int{}
		}
		w.more[kind] += count
		return
	}
	if w.untold == nil {
		w.untold = map[string][]telling{}
	}
	w.untold[kind] = append(w.untold[kind], what)
}

// note adds a denial for the audit trail alone, or counts it.
func (w *waiting) note(d platform.Denial) {
	known := slices.ContainsFunc(w.unnoted, func(other platform.Denial) bool {
		return other.Access == d.Access && other.Target == d.Target && other.Process == d.Process
	})
	switch {
	case known:
	case len(w.unnoted) < maxUntold:
		w.unnoted = append(w.unnoted, d)
	default:
		w.unread += d.Count
	}
}

// tell tells a session everything, and returns how many alarms it could not tell:
// no session lists their number.
func (w *waiting) tell(r *running) (lost int) {
	for _, kind := range kinds {
		for _, tell := range w.untold[kind] {
			tell(r, false)
		}
		r.record.Missed(kind, w.more[kind])
	}
	for _, d := range w.unnoted {
		r.record.Denied(d)
	}
	r.record.Missed(audit.Refused, w.unread)
	r.denials.miss(w.more[audit.Refused])
	return w.more[audit.Review]
}

// tell tells the session of a process of so many events: the session that it is in,
// else the latest one. If none runs, the next one is told.
func (g *Group) tell(pid int, kind string, count int, what telling) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, own := g.memberOf(pid); m != nil {
		what(m.running, own)
		return
	}
	g.waiting.add(kind, count, what)
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
	if g.noted() {
		g.waiting.note(d)
	}
}

// memberOf finds the member of a process, by its POSIX session and those of its
// ancestors; the latest one if there is no other. Then own is false, unless nobody
// can tell. It is nil if no command runs. g.mu is held.
func (g *Group) memberOf(pid int) (found *member, own bool) {
	if len(g.members) == 0 {
		return nil, false
	}
	if pid == 0 { // nobody knows whose; a command that starts now may fail
		return g.latestStarted(), true
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
	ended, isLeft := true, false
	for session := range lifecycle.SessionsOf(pid) {
		if m := find(session); m != nil {
			return m, true
		}
		ended = false
		isLeft = isLeft || g.left.has(session)
	}
	// A command may be refused something before its start is reported.
	starts := slices.ContainsFunc(g.members, func(m *member) bool { return m.call.process == nil })
	return g.members[len(g.members)-1], ended || starts && !isLeft
}

// leftovers are the POSIX sessions of commands that have ended, and may have left
// processes. While one is in a session, the kernel gives the session's number to no
// other process (Linux: __change_pid in kernel/pid.c; macOS: forkproc in
// kern_fork.c). A command that gets the number afterwards is taken for what is left
// until its start is reported.
type leftovers struct {
	sessions map[int]bool
	enough   int // so many are kept until those without a process are dropped
}

// minLeftovers is how many are kept without looking for their processes.
const minLeftovers = 256

// add adds the session of a command that has ended. living yields the sessions that
// have processes, or an error if they are unknown.
func (l *leftovers) add(session int, living func() (map[int]bool, error)) {
	if l.sessions == nil {
		l.sessions, l.enough = map[int]bool{}, minLeftovers
	}
	l.sessions[session] = true
	if len(l.sessions) <= l.enough {
		return
	}
	if alive, err := living(); err == nil {
		maps.DeleteFunc(l.sessions, func(session int, _ bool) bool { return !alive[session] })
	}
	l.enough = 2*len(l.sessions) + minLeftovers
}

// remove forgets a number: it is that of a command that has started.
func (l *leftovers) remove(session int) { delete(l.sessions, session) }

// has reports whether a session is known to be of a command that has ended.
func (l *leftovers) has(session int) bool { return l.sessions[session] }

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
	g.tell(0, audit.Connected, 1, func(r *running, _ bool) { r.record.Connected(target, process) })
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

// patienceWith returns the refusals that are counted for the session that a denial
// belongs to; nil if it belongs to none that runs. What an earlier session has left
// would otherwise silence each later one, and get new questions with each.
func (g *Group) patienceWith(denial platform.Denial) *patience {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m, own := g.memberOf(denial.PID); m != nil && own {
		return &m.call.patience
	}
	return nil
}

// groupObserver tells a group's sessions what happens to the group.
type groupObserver Group

// Alarm tells the latest session.
func (o *groupObserver) Alarm(alarm Alarm) {
	(*Group)(o).tell(0, audit.Review, 1, func(r *running, _ bool) { r.protection.raise(alarm) })
}

// Denied is not called: running.denied asks the group first.
func (*groupObserver) Denied(Denial) {}

// Reached tells all sessions, as the limits are of the group.
func (o *groupObserver) Reached(limit Reached) {
	(*Group)(o).each(func(r *running) { r.limits.put(limit) })
}
