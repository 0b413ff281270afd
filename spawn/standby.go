package spawn

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

const (
	// standbyDelay lets what was just started have the processors first.
	standbyDelay = 30 * time.Millisecond
	// standbyLifetime is how long a stage that nobody needs is kept: agents run one
	// command after another, people open a terminal now and then.
	standbyLifetime = 15 * time.Second
)

// standbyPool keeps a stage ready for the next sandboxed session, because the start
// of a process and of its runtime is the most of what a session waits for. The
// stage has a group of its own, which becomes the session's, and has seen
// nothing yet of any: its order tells it everything. The zero value is ready,
// and keeps nothing before want.
type standbyPool struct {
	mu      sync.Mutex    // guards the fields below
	waiting *standbyStage // nil where there is none
	timer   *time.Timer
	count   int
	closed  bool
	working sync.WaitGroup
}

// standbyStage is a stage that waits.
type standbyStage struct {
	group      lifecycle.Group
	stage      *platform.Standby
	standbyKey string
}

// take hands out the stage; nil where there is none.
func (p *standbyPool) take() *standbyStage {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.waiting
	p.waiting = nil
	p.stop()
	return taken
}

// stop ends whatever is planned. p.mu is held.
func (p *standbyPool) stop() {
	if p.timer != nil && p.timer.Stop() {
		p.working.Done()
	}
	p.timer = nil
}

// plan does something later, in place of what was planned before. p.mu is held.
func (p *standbyPool) plan(pause time.Duration, do func()) {
	p.stop()
	p.working.Add(1)
	p.timer = time.AfterFunc(pause, func() {
		defer p.working.Done()
		do()
	})
}

// want has a stage started soon that is like this session's.
func (p *standbyPool) want(s *Spawner, confinement platform.Confinement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.Standby || p.closed || confinement.StandbyKey == "" || p.waiting != nil {
		return
	}
	p.count++
	name := "standby-" + strconv.Itoa(p.count)
	p.plan(standbyDelay, func() {
		made, err := s.prepare(name, confinement)
		if err != nil {
			s.log().Debug("no stage started ahead", "error", err) // the next session starts its own, and says what is wrong
			return
		}
		if !p.keep(s, made) {
			s.drop(made)
		}
	})
}

// keep makes a stage the one that is ready, and reports whether it may be.
func (p *standbyPool) keep(s *Spawner, made *standbyStage) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.waiting != nil {
		return false
	}
	p.waiting = made
	p.plan(standbyLifetime, func() {
		p.mu.Lock()
		old := p.waiting
		if old != made {
			old = nil
		} else {
			p.waiting = nil
		}
		p.mu.Unlock()
		if old != nil {
			s.drop(old)
		}
	})
	return true
}

// close ends it for good, with the stage.
func (p *standbyPool) close(s *Spawner) {
	p.mu.Lock()
	p.closed = true
	old := p.waiting
	p.waiting = nil
	p.stop()
	p.mu.Unlock()
	if old != nil {
		s.drop(old)
	}
	p.working.Wait()
}

// prepare starts a stage in a group of its own.
func (s *Spawner) prepare(name string, confinement platform.Confinement) (*standbyStage, error) {
	group, err := s.Tracker.NewGroup(name)
	if err != nil {
		return nil, err
	}
	useSignalDomain(group) // every session that gets a stage which was started ahead is confined
	stage, err := platform.StartStandby(s.Backend, confinement, group.Start)
	if err != nil {
		s.abandon(group)
		return nil, err
	}
	return &standbyStage{group: group, stage: stage, standbyKey: confinement.StandbyKey}, nil
}

// drop ends a stage that nobody has needed.
func (s *Spawner) drop(unneeded *standbyStage) {
	unneeded.stage.Drop()
	s.abandon(unneeded.group)
}

func (s *Spawner) abandon(group lifecycle.Group) {
	run := &running{group: group, tracker: s.Tracker, log: s.log()}
	run.abandon()
}

// errRetry means that a session is to be started once more: the stage that was
// started ahead, or a guess about the machine, was of no use.
var errRetry = errors.New("the stage was started for another kind of session")

// start starts a session in the stage that is ready, or else in one of its own.
func (s *Spawner) start(ctx context.Context, request Request,
	streams func(*platform.Target) (release func(), err error)) (*running, error) {
	if request.Policy.Restricted {
		if standby := s.pool.take(); standby != nil {
			if run, err := s.startIn(ctx, request, streams, standby); !errors.Is(err, errRetry) {
				return run, err
			}
		}
	}
	run, err := s.startIn(ctx, request, streams, nil)
	if errors.Is(err, errRetry) { // a guess, of which there is one at most
		run, err = s.startIn(ctx, request, streams, nil)
	}
	return run, err
}

// Close ends what was started ahead. No session may be started any more.
func (s *Spawner) Close() { s.pool.close(s) }
