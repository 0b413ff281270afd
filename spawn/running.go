package spawn

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// running is a leader with everything that ends with it.
type running struct {
	process        lifecycle.Process
	group          lifecycle.Group
	master         *os.File             // of the session's own terminal; nil on the caller's
	held           []*os.File           // closed with the group
	supervision    platform.Supervision // nil if the sandbox needs none
	supervisionEnd sync.Once            // for endSupervision
	localhost      platform.Localhost   // nil if the session has none of its own
	forwards       forwards
	protection     *protectionWatch // nil if the policy restricts nothing
	denials        *denialQueue     // nil if denials are not to be reported
	agents         []*agent.Filter  // of agents that the session has a part of
	outcome        Outcome
	limits         reachedLimits
	policy         *policy.Policy // of the session, its own directories included
	env            []string       // of the leader, until the session has begun
	startedAt      time.Time
	tracker        Tracker
	log            *slog.Logger
	record         *record.Session // nil if there is no audit trail
}

// denied reports a denial, unless programs expect it.
func (r *running) denied(d platform.Denial) {
	if platform.Expected(d) {
		r.log.Debug("refused, as expected", "access", d.Access, "target", d.Target, "process", d.Process)
		return
	}
	r.record.Denied(d)
	r.denials.put(d)
}

// deliver tells an observer what happens, on goroutines of the wait group, until
// protection, denials and limits have ended. alarm takes its alarms.
func (r *running) deliver(delivering *sync.WaitGroup, observer Observer, alarm func(Alarm)) {
	delivering.Go(func() {
		for a, ok := r.protection.next(); ok; a, ok = r.protection.next() {
			alarm(a)
		}
	})
	delivering.Go(func() {
		for denial, ok := r.denials.next(); ok; denial, ok = r.denials.next() {
			observer.Denied(denial)
		}
	})
	limits := r.limits.listen()
	delivering.Go(func() {
		for limit := range limits {
			observer.Reached(limit)
		}
	})
}

// noteEnd notes the session's end. survivors says that processes are left.
func (r *running) noteEnd(exit Exit, survivors bool) {
	r.record.Ended(exit.Code, exit.Signal, survivors, r.protection.reviewed())
}

// kill ends every process of the group; see lifecycle.Group.
func (r *running) kill(ctx context.Context) (killed int, err error) {
	return r.group.Kill(ctx)
}

// endSupervision ends what the sidecar does for the session. It may wait for the
// last denials. Only the first call has an effect.
func (r *running) endSupervision() {
	r.supervisionEnd.Do(func() {
		r.forwards.end()
		if r.localhost != nil {
			_ = r.localhost.Close()
		}
		if r.supervision != nil {
			if err := r.supervision.Close(); err != nil {
				r.log.Warn("supervision of a session did not end", "error", err)
			}
		}
	})
}

// release gives back everything but the terminal. The group must be empty, or
// killErr must name the survivors, which are killed in the background from then
// on. Failures are only logged, because the session has ended all the same.
func (r *running) release(killErr error) {
	r.protection.end()
	r.endSupervision()
	for _, filter := range r.agents {
		filter.Close()
	}
	r.denials.end()
	for _, file := range r.held {
		file.Close()
	}
	if killErr != nil {
		r.log.Error("processes of a session survived; they are killed in the background", "error", killErr)
		r.tracker.Linger(r.group)
		return
	}
	if err := r.group.Close(); err != nil {
		r.log.Warn("a group of processes was not given back", "error", err)
	}
}

// abandon ends what a failed start left behind. The program may already have
// been executed and have started others, if the start was cancelled just then.
func (r *running) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_, err := r.kill(ctx)
	r.release(err)
	if r.master != nil {
		r.master.Close()
	}
}
