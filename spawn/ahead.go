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
	// aheadPause lets what was just started have the processors first.
	aheadPause = 30 * time.Millisecond
	// aheadLife is how long a stage that nobody needs is kept: agents run one
	// command after another, people open a terminal now and then.
	aheadLife = 15 * time.Second
)

// ahead keeps a stage ready for the next sandboxed session, because the start
// of a process and of its runtime is the most of what a session waits for. The
// stage has a group of its own, which becomes the session's, and has seen
// nothing yet of any: its order tells it everything. The zero value is ready,
// and keeps nothing before want.
type ahead struct {
	mu      sync.Mutex // guards the fields below
	ready   *ready     // nil where there is none
	timer   *time.Timer
	count   int
	closed  bool
	working sync.WaitGroup
}

// ready is a stage that waits.
type ready struct {
	group      lifecycle.Group
	stage      *platform.Standby
	standbyKey string
}

// take hands out the stage; nil where there is none.
func (a *ahead) take() *ready {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.ready
	a.ready = nil
	a.stop()
	return taken
}

// stop ends whatever is planned. a.mu is held.
func (a *ahead) stop() {
	if a.timer != nil && a.timer.Stop() {
		a.working.Done()
	}
	a.timer = nil
}

// plan does something later, in place of what was planned before. a.mu is held.
func (a *ahead) plan(pause time.Duration, do func()) {
	a.stop()
	a.working.Add(1)
	a.timer = time.AfterFunc(pause, func() {
		defer a.working.Done()
		do()
	})
}

// want has a stage started soon that is like this session's.
func (a *ahead) want(s *Spawner, confinement platform.Confinement) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.Ahead || a.closed || confinement.StandbyKey == "" || a.ready != nil {
		return
	}
	a.count++
	name := "ahead-" + strconv.Itoa(a.count)
	a.plan(aheadPause, func() {
		made, err := s.prepare(name, confinement)
		if err != nil {
			s.log().Debug("no stage started ahead", "error", err) // the next session starts its own, and says what is wrong
			return
		}
		if !a.keep(s, made) {
			s.drop(made)
		}
	})
}

// keep makes a stage the one that is ready, and reports whether it may be.
func (a *ahead) keep(s *Spawner, made *ready) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.ready != nil {
		return false
	}
	a.ready = made
	a.plan(aheadLife, func() {
		a.mu.Lock()
		old := a.ready
		if old != made {
			old = nil
		} else {
			a.ready = nil
		}
		a.mu.Unlock()
		if old != nil {
			s.drop(old)
		}
	})
	return true
}

// close ends it for good, with the stage.
func (a *ahead) close(s *Spawner) {
	a.mu.Lock()
	a.closed = true
	old := a.ready
	a.ready = nil
	a.stop()
	a.mu.Unlock()
	if old != nil {
		s.drop(old)
	}
	a.working.Wait()
}

// prepare starts a stage in a group of its own.
func (s *Spawner) prepare(name string, confinement platform.Confinement) (*ready, error) {
	group, err := s.Tracker.NewGroup(name)
	if err != nil {
		return nil, err
	}
	enclose(group) // every session that gets a stage which was started ahead is confined
	stage, err := platform.Prepare(s.Backend, confinement, group.Start)
	if err != nil {
		s.abandon(group)
		return nil, err
	}
	return &ready{group: group, stage: stage, standbyKey: confinement.StandbyKey}, nil
}

// drop ends a stage that nobody has needed.
func (s *Spawner) drop(unneeded *ready) {
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
		if prepared := s.ahead.take(); prepared != nil {
			if run, err := s.startIn(ctx, request, streams, prepared); !errors.Is(err, errRetry) {
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
func (s *Spawner) Close() { s.ahead.close(s) }
