package spawn

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

const (
	// standbyDelay gives the session that was just started the processors
	// first.
	standbyDelay = 30 * time.Millisecond
	// standbyLifetime is how long an unused stage waits. Agents run one command
	// after another; people open a terminal now and then.
	standbyLifetime = 15 * time.Second
)

// standbyPool holds at most one stage that was started in advance; see
// docs/design/standby.md. The zero value is ready for use.
type standbyPool struct {
	mu      sync.Mutex          // guards the fields below
	waiting *waitingStage       // nil if there is none
	timer   *time.Timer         // starts a stage if waiting is nil; otherwise ends it
	due     func(*waitingStage) // starts the stage that timer is to start; nil if it is to start none
	count   int                 // of stages started, for their groups' names
	closed  bool
	working sync.WaitGroup // functions that timer is to call, or has called
}

// waitingStage is a stage on standby, or one that is being started.
type waitingStage struct {
	name    string        // of its group
	started chan struct{} // closed once stage is set
	stage   *standbyStage // nil if it could not be started
}

// standbyStage is a stage that waits for its order, in a group of its own.
type standbyStage struct {
	group    lifecycle.Group
	started  func() (*platform.Standby, error) // waits for the stage's start
	key      string                            // the StandbyKey of the confinements that fit it
	pooled   bool                              // it has no streams, and may have waited for long
	inDomain bool                              // it must enter a signal domain
}

// fits reports whether the stage can start a session.
func (s *standbyStage) fits(p *policy.Policy, confinement platform.Confinement) bool {
	return s.key == confinement.StandbyKey && (confinement.OwnTerminal || !s.pooled) && (p.Restricted || !s.inDomain)
}

// take returns the stage and leaves none; nil if there is none. If the stage is
// being started, take waits until ctx is done: another would not be sooner.
func (p *standbyPool) take(ctx context.Context, s *Spawner) *standbyStage {
	p.mu.Lock()
	taken := p.waiting
	p.waiting = nil
	p.cancel()
	if taken == nil {
		p.mu.Unlock()
		return nil
	}
	p.working.Add(1)
	p.mu.Unlock()
	select {
	case <-taken.started:
		p.working.Done()
		return taken.stage
	case <-ctx.Done():
	}
	go func() { // nobody needs it any more
		defer p.working.Done()
		<-taken.started
		if taken.stage != nil {
			s.drop(taken.stage)
		}
	}()
	return nil
}

// refill starts a stage soon, for a session that is confined in the same way.
func (p *standbyPool) refill(s *Spawner, confinement platform.Confinement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.Standby || p.closed || !confinement.OwnTerminal || p.waiting != nil {
		return
	}
	start := func(waiting *waitingStage) { p.fill(s, confinement, waiting) }
	p.after(standbyDelay, func() {
		p.mu.Lock()
		var waiting *waitingStage
		if p.due != nil { // not cancelled meanwhile
			waiting = p.begin()
		}
		p.mu.Unlock()
		if waiting != nil {
			start(waiting)
		}
	})
	p.due = start
}

// hurry starts the stage at once that refill would start later. The session
// that it made room for needs the processors no longer. A session that comes
// after hurry has returned gets that stage.
func (p *standbyPool) hurry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due == nil || !p.timer.Stop() {
		return
	}
	start := p.due // before begin, which clears it
	waiting := p.begin()
	go func() {
		defer p.working.Done() // as the function of the timer would
		start(waiting)
	}()
}

// begin makes a stage that is being started the waiting one. p.mu is held.
func (p *standbyPool) begin() *waitingStage {
	p.timer, p.due = nil, nil
	p.count++
	p.waiting = &waitingStage{name: "standby-" + strconv.Itoa(p.count), started: make(chan struct{})}
	return p.waiting
}

// fill starts the waiting stage and keeps it for its lifetime.
func (p *standbyPool) fill(s *Spawner, confinement platform.Confinement, waiting *waitingStage) {
	stage, err := s.newStandby(waiting.name, confinement)
	if err != nil {
		// The next session starts a stage of its own, and reports what is
		// wrong.
		s.log().Debug("no stage on standby", "error", err)
	}
	waiting.stage = stage
	close(waiting.started)

	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.waiting != waiting: // a session has taken it
	case err != nil:
		p.waiting = nil
	default:
		p.after(standbyLifetime, func() { p.expire(s, waiting) })
	}
}

// expire ends the stage if no session has taken it.
func (p *standbyPool) expire(s *Spawner, waiting *waitingStage) {
	p.mu.Lock()
	unused := p.waiting == waiting
	if unused {
		p.waiting = nil
	}
	p.mu.Unlock()
	if unused {
		s.drop(waiting.stage)
	}
}

// close drops the stage and waits for everything that is under way.
func (p *standbyPool) close(s *Spawner) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	if stage := p.take(context.Background(), s); stage != nil {
		s.drop(stage)
	}
	p.working.Wait()
}

// after calls a function later, instead of the one that was to be called
// before. p.mu is held.
func (p *standbyPool) after(delay time.Duration, do func()) {
	p.cancel()
	p.working.Add(1)
	p.timer = time.AfterFunc(delay, func() {
		defer p.working.Done()
		do()
	})
}

// cancel withdraws the function that was to be called. p.mu is held.
func (p *standbyPool) cancel() {
	if p.timer != nil && p.timer.Stop() {
		p.working.Done()
	}
	p.timer, p.due = nil, nil
}

// newStandby starts a stage in a group of its own.
func (s *Spawner) newStandby(name string, confinement platform.Confinement) (*standbyStage, error) {
	group, err := s.Tracker.NewGroup(name)
	if err != nil {
		return nil, err
	}
	inDomain := useSignalDomain(group) // every session that gets a stage on standby is confined
	stage, err := platform.StartStandby(s.Backend, confinement, group.Start)
	if err != nil {
		s.abandon(group)
		return nil, err
	}
	s.log().Debug("a stage is on standby", "pid", stage.PID())
	started := func() (*platform.Standby, error) { return stage, nil }
	return &standbyStage{
		group: group, started: started, key: confinement.StandbyKey, pooled: true, inDomain: inDomain,
	}, nil
}

// drop ends a stage that no session has used.
func (s *Spawner) drop(unused *standbyStage) {
	unused.end()
	s.abandon(unused.group)
}

// end ends the stage, unless it has become a leader.
func (s *standbyStage) end() {
	if stage, err := s.started(); err == nil {
		stage.Drop()
	}
}

func (s *Spawner) abandon(group lifecycle.Group) {
	run := &running{group: group, tracker: s.Tracker, log: s.log()}
	run.abandon()
}
