package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
)

// member is a session of a group.
type member struct {
	running *running
	call    *call
	since   *review.State // what Group.between was before it joined
}

// MayHaveRun reports whether a session that could not be started in a group may have
// run nevertheless.
func MayHaveRun(err error) bool {
	return errors.Is(err, platform.ErrMayHaveRun) || errors.Is(err, platform.ErrSilentInit)
}

// Silent reports whether a session could not be started in a group because the
// process that starts sessions there does not answer, and so starts no other one.
func Silent(err error) bool { return errors.Is(err, platform.ErrSilentInit) }

// Start starts a session in the group. The request must be like that of
// StartGroup in its policy. The error is ErrGroupEnded if the group has ended,
// and an *Error if the session could not be started.
func (g *Group) Start(ctx context.Context, request Request) (*Session, error) {
	given := ownTerminal
	if request.Pipe {
		given = ownPipe
	}
	// Whoever leads the session of a terminal takes it along when it ends, with
	// what it has left in the background.
	m, err := g.command(ctx, request, given, !request.Pipe && !request.NoInput)
	if err != nil {
		return nil, err
	}
	return newSession(request, m.running, func() { g.leave(m) }), nil
}

// Background starts a program in the group, as Spawner.Background does, with three
// streams. Without them it has a terminal, which Background.Terminal returns. The
// errors are those of Start.
func (g *Group) Background(ctx context.Context, request Request, files *[3]*os.File) (*Background, error) {
	given := ownTerminal
	if files != nil {
		given = func(target *platform.Target, _ Request) (*os.File, func(), error) {
			target.Streams = *files
			return nil, func() {}, nil
		}
	}
	m, err := g.command(ctx, request, given, files == nil)
	if err != nil {
		return nil, err
	}
	b := &Background{running: m.running, done: make(chan struct{}), left: func() { g.leave(m) }}
	go b.await()
	return b, nil
}

// command starts the command of a new member.
func (g *Group) command(ctx context.Context, request Request, given streams, controlling bool) (*member, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	if request.Full && !g.running.outcome.Full() {
		return nil, notFull("the group that is to be joined lacks a protection")
	}
	noted := g.spawner.note(&request)
	r := &running{
		tracker: g.spawner.Tracker, log: g.running.log, record: noted, policy: g.running.policy,
		outcome: g.running.outcome, questions: g.running.questions,
	}
	m := &member{running: r, call: &call{shared: g, ask: request.Ask}}
	r.group = m.call
	if g.running.denials != nil {
		r.kept = g.spawner.keep(&request)
	}
	if err := g.join(m); err != nil {
		noted.NotStarted(err)
		return nil, err
	}
	if err := g.start(ctx, request, m, given, controlling); err != nil {
		g.leave(m)
		go g.endIfIdle() // as at the end of one that started
		noted.NotStarted(err)
		return nil, err
	}
	g.tellWaiting(m)
	return m, nil
}

// tellWaiting tells a member whose command has started what happened while no
// command ran.
func (g *Group) tellWaiting(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if lost := g.waiting.tell(m.running); lost > 0 {
		g.running.log.Warn("changes of protected paths while no command ran are not listed", "more", lost)
	}
	g.waiting = waiting{}
}

// join adds a member whose command is to be started.
func (g *Group) join(m *member) error {
	r := m.running
	if g.running.denials != nil {
		r.denials = newDenialQueue(maxDenials)
		r.denials.lacking = g.running.denials.lacking
	}
	limits := &g.running.limits
	r.limits.most, r.limits.whole, r.limits.unheard = limits.most, limits.whole, limits.unheard
	if g.running.localhost != nil {
		r.localhost = sharedLocalhost{g.running.localhost}
	}
	if r.policy != nil && r.policy.Restricted { // nil without a sandbox
		// It cannot fail, as it watches nothing: the group does.
		r.protection, _ = newProtectionWatch(r.policy, g.spawner.Met, nil, r.record)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending {
		return ErrGroupEnded
	}
	if r.protection != nil {
		m.since, g.between = g.between, nil
		r.protection.since(m.since)
	}
	g.members = append(g.members, m)
	g.joined++
	g.unusedLong = false
	if g.unused != nil {
		g.unused.Stop()
	}
	return nil
}

// start has the init start a member's command.
func (g *Group) start(ctx context.Context, request Request, m *member, given streams, controlling bool) error {
	r := m.running
	if err := r.record.Acknowledged(); err != nil {
		return &Error{Attempt: "note session", Cause: err, Hint: auditHint(err, request.Policy.Audit)}
	}
	order := platform.Order{Program: request.Program, Argv: request.Argv, Dir: request.Dir}
	order.Env, r.outcome.Dropped = g.around.environment(&request)
	r.env = order.Env
	target := platform.Target{Order: order, Confinement: g.around.confinement}
	master, release, err := given(&target, request)
	if err != nil {
		return err
	}
	defer release()
	var files []*os.File
	if target.Order.Terminal == nil {
		files = target.Streams[:]
	}
	if anyWritable(files) { // and it may hand them on to another command
		g.writable.Store(true)
	}
	started, err := g.init.Start(ctx, target.Order, files, controlling)
	if err != nil {
		if master != nil {
			master.Close()
		}
		if errors.Is(err, platform.ErrInitGone) {
			return fmt.Errorf("%w: %w", ErrGroupEnded, err)
		}
		return launchError(request, err)
	}
	if started.Terminal() != nil {
		master = started.Terminal()
	}
	g.mu.Lock()
	m.call.process = started
	g.left.remove(started.PID())
	g.started++
	g.mu.Unlock()
	r.process, r.master, r.startedAt = started, master, time.Now()
	r.record.Started(started.PID(), r.outcome.Confined, r.outcome.Protections())
	r.kept.Started(started.PID())
	g.spawner.listing.add(r, &request, g)
	return nil
}

// leave notes that a member's command has ended, or was never started.
func (g *Group) leave(m *member) {
	started, last := g.remove(m)
	if !last || m.running.protection == nil || m.call.process == nil || m.call.process.Alone() {
		return
	}
	between := review.Take(m.running.policy) // it takes long in a large project
	between.Remember(g.spawner.Met)
	g.mu.Lock()
	defer g.mu.Unlock()
	// Else a session that has started knows the project's state, or an older one is
	// still to be told.
	if g.started == started && g.between == nil {
		g.between = between
	}
}

// remove removes a member. last is true if it was the last one whose command runs,
// and started is how many commands have started. One that starts now may fail.
func (g *Group) remove(m *member) (started int, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	if m.call.process != nil {
		g.last = m.running.record
		if !m.call.process.Alone() {
			g.left.add(m.call.process.PID(), lifecycle.Sessions)
		}
	} else if g.between == nil {
		g.between = m.since // it was not started: the next one tells that
	}
	if len(g.members) == 0 && !g.ending && g.unused != nil {
		g.unused.Reset(unusedTime)
	}
	return g.started, !g.ending && g.latestStarted() == nil
}

// latestStarted is the latest member whose command has started, and has not ended;
// nil if there is none. g.mu is held.
func (g *Group) latestStarted() *member {
	for _, m := range slices.Backward(g.members) {
		if m.call.process != nil {
			return m
		}
	}
	return nil
}

// sharedLocalhost is the group's, and is closed with it.
type sharedLocalhost struct{ platform.Localhost }

// Close does nothing.
func (sharedLocalhost) Close() error { return nil }
