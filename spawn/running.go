package spawn

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/credentials"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/refusals"
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
	protection     *protectionWatch  // nil if the policy restricts nothing
	denials        *denialQueue      // nil if denials are not to be reported
	kept           *refusals.Session // nil if they are not kept either
	told           *atPrompt         // nil if no prompt shows them
	questions      *questions        // nil if nobody can be asked
	agents         []*agent.Filter   // of agents that the session has a part of
	room           *credentials.Room // has the secrets that the session uses; nil if it uses none
	outcome        Outcome
	limits         reachedLimits
	policy         *policy.Policy // of the session, its own directories included
	env            []string       // of the leader, until the session has begun
	startedAt      time.Time
	tracker        Tracker
	log            *slog.Logger
	record         *record.Session // nil if there is no audit trail
	shared         *Group          // the group whose init this is; nil for any other leader
	unlist         func()          // ends what Spawner.List says of it; nil until it is listed
	// writable: the program was started with a descriptor through which files can
	// change that nobody is asked about.
	writable bool

	delivering sync.WaitGroup // of deliver
	alarms     []Alarm        // see keep; complete once end has returned

	groupMu  sync.Mutex // held while the group is killed or given back, so that no cgroup vanishes during a kill
	killed   int        // processes that had to be killed; guarded by groupMu
	survived error      // of the first kill with survivors; guarded by groupMu
	released bool       // guarded by groupMu
}

// denied reports a denial, unless programs expect it.
func (r *running) denied(d platform.Denial) {
	if platform.Expected(d) {
		r.log.Debug("refused, as expected", "access", d.Access, "target", d.Target, "process", d.Process)
		if platform.ExpectedByName(d) {
			r.noteAlone(d)
		}
		return
	}
	d.Unasked = r.questions.wasSilent(d)
	if r.shared != nil {
		r.shared.tell(d.PID, audit.Refused, d.Count, func(member *running, own bool) {
			d.Background = !own
			member.heard(d)
		})
		return
	}
	r.heard(d)
}

// noteAlone notes a denial in the audit trail, and reports it to nobody else.
func (r *running) noteAlone(d platform.Denial) {
	if r.shared != nil {
		r.shared.note(d)
		return
	}
	r.record.Denied(d)
}

// heard reports a denial that is this session's.
func (r *running) heard(d platform.Denial) {
	r.record.Denied(d)
	if r.denials.put(d) {
		lacking := lackingAt(r.denials.lacking, d.Target)
		r.kept.Add(d, lacking)
		r.told.denied(Denial{Denial: d, Lacking: lacking})
	}
}

// refused are the denials, with their numbers.
func (r *running) refused() (list []Denial, missed int) {
	list, missed = r.denials.all()
	for i := range list {
		list[i].Number = r.kept.Number(list[i].Denial)
	}
	return list, missed
}

// deliver tells an observer what happens, on goroutines that end waits for. It
// is called once at most. keep says whether alarms are kept for the end, too.
func (r *running) deliver(observer Observer, keep bool) {
	r.delivering.Go(func() {
		for a, ok := r.protection.next(); ok; a, ok = r.protection.next() {
			if keep {
				r.alarms = append(r.alarms, a)
			}
			observer.Alarm(a)
		}
	})
	r.delivering.Go(func() {
		for denial, ok := r.denials.next(); ok; denial, ok = r.denials.next() {
			observer.Denied(denial)
		}
	})
	limits := r.limits.listen()
	r.delivering.Go(func() {
		for limit := range limits {
			observer.Reached(limit)
		}
	})
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

// ending is what the end of a session depends on: whose terminal it has.
type ending struct {
	// await reaps the leader.
	await func() Exit
	// leaderEnded is called once the leader was reaped.
	leaderEnded func(Exit)
	// drain waits for the rest of the output.
	drain func()
	// over is called once everything was delivered and given back, before the
	// review; nil if nobody waits for that.
	over func(Exit)
}

// end owns the end of a session, in the one order that every kind of session
// has. It returns once every event was delivered, everything was given back but
// what drain owns, and the project was reviewed. The error names the survivors;
// see kill.
func (r *running) end(e ending) (Exit, error) {
	ended := make(chan struct{})
	var reaping sync.WaitGroup
	reaping.Go(func() { reapTraced(ended, r.process.PID()) })
	exit := e.await()
	close(ended)
	e.leaderEnded(exit)
	reaping.Wait()
	err := r.kill()
	// No process is left that could do anything. The last reports come from
	// whoever watched, and from the output.
	r.protection.end()
	if _, member := r.group.(*call); !member && err == nil {
		r.protection.gone()
	}
	r.endSupervision()
	e.drain()
	r.denials.end()
	r.told.end() // no prompt follows
	r.kept.Flush()
	r.checkLimits() // before the group is given back
	r.limits.end()
	r.delivering.Wait()
	for alarm, ok := r.protection.next(); ok; alarm, ok = r.protection.next() {
		r.alarms = append(r.alarms, alarm) // nobody was told of it
	}
	r.release()
	if r.unlist != nil { // nil in tests
		r.unlist()
	}
	if e.over != nil {
		e.over(exit)
	}
	if r.wroteNothing(err) {
		r.protection.unwritten()
	}
	r.record.Ended(exit.Code, exit.Signal, err != nil, r.protection.review(r.outcome.PreventsChanges()))
	return exit, err
}

func waitFor(process lifecycle.Process) Exit {
	status, err := process.Wait(false)
	if err != nil {
		// A bug: no other code waits for this child.
		panic(fmt.Sprintf("BUG(sandbox-sidecar): wait for leader %d: %v", process.PID(), err))
	}
	return exitOf(status)
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Signal: status.Signal()}
	}
	return Exit{Code: status.ExitStatus()}
}

// kill ends every process of the group; see lifecycle.Group. Survivors are
// killed in the background from then on, and later calls return the same error
// at once. After the session's end it has no effect.
func (r *running) kill() error {
	r.groupMu.Lock()
	defer r.groupMu.Unlock()
	if r.released {
		return r.survived // do not wait for the survivors again
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	killed, err := r.group.Kill(ctx)
	r.killed += killed
	if err != nil {
		r.survived = err
		r.checkLimits() // while the group still knows
		r.giveBack()
	}
	return err
}

// killedSoFar is how many processes had to be killed.
func (r *running) killedSoFar() int {
	r.groupMu.Lock()
	defer r.groupMu.Unlock()
	return r.killed
}

// release gives back everything but the terminal, unless kill has. The group
// must be empty.
func (r *running) release() {
	r.groupMu.Lock()
	defer r.groupMu.Unlock()
	if !r.released {
		r.giveBack()
	}
}

// giveBack is called once, with groupMu held. Failures are only logged, because
// the session has ended all the same. If processes survive, the output is still
// to be read, so that end alone ends the denials and the limits.
func (r *running) giveBack() {
	r.released = true
	r.protection.end()
	r.endSupervision()
	if r.room != nil {
		r.room.Close()
	}
	r.told.end()
	for _, filter := range r.agents {
		filter.Close()
	}
	for _, file := range r.held {
		file.Close()
	}
	if r.survived != nil {
		r.log.Error("processes of a session survived; they are killed in the background", "error", r.survived)
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
	_ = r.kill() // which gives the survivors to the tracker
	r.release()
	if r.master != nil {
		r.master.Close()
	}
}
