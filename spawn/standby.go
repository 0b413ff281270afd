package spawn

import (
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
	mu      sync.Mutex    // guards the fields below
	waiting *standbyStage // nil if there is none
	timer   *time.Timer
	count   int // of stages started, for their groups' names
	closed  bool
	working sync.WaitGroup // functions that timer is to call, or has called
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

// take returns the stage and leaves none; nil if there is none.
func (p *standbyPool) take() *standbyStage {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.waiting
	p.waiting = nil
	p.cancel()
	return taken
}

// refill starts a stage soon, for a session that is confined in the same way.
func (p *standbyPool) refill(s *Spawner, confinement platform.Confinement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.Standby || p.closed || !confinement.OwnTerminal || p.waiting != nil {
		return
	}
	p.count++
	name := "standby-" + strconv.Itoa(p.count)
	p.after(standbyDelay, func() {
		stage, err := s.newStandby(name, confinement)
		if err != nil {
			// The next session starts a stage of its own, and reports what is
			// wrong.
			s.log().Debug("no stage on standby", "error", err)
			return
		}
		if !p.put(s, stage) {
			s.drop(stage)
			return
		}
		if started, err := stage.started(); err == nil {
			s.log().Debug("a stage is on standby", "pid", started.PID())
		}
	})
}

// put puts a stage on standby for its lifetime. It reports false if there is
// another one already, or the pool is closed.
func (p *standbyPool) put(s *Spawner, stage *standbyStage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.waiting != nil {
		return false
	}
	p.waiting = stage
	p.after(standbyLifetime, func() {
		p.mu.Lock()
		expired := p.waiting == stage
		if expired {
			p.waiting = nil
		}
		p.mu.Unlock()
		if expired {
			s.drop(stage)
		}
	})
	return true
}

// close drops the stage and waits for everything that is under way.
func (p *standbyPool) close(s *Spawner) {
	p.mu.Lock()
	p.closed = true
	stage := p.waiting
	p.waiting = nil
	p.cancel()
	p.mu.Unlock()
	if stage != nil {
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
	p.timer = nil
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
