package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// Group is a sandbox that several sessions share; see docs/design/groups.md. Its
// methods may be called from several goroutines.
type Group struct {
	id      string  // as Spawner.List has it
	tool    bool    // the session that it was started for is no terminal
	request Request // of that session
	spawner *Spawner
	init    *platform.GroupInit
	around  surroundings
	running *running // of the init; set once the group has started

	// writable: a command was started with a descriptor through which files can
	// change that nobody is asked about.
	writable atomic.Bool

	done     chan struct{} // closed once nothing is left and the fields below are set
	err      error         // names the survivors
	alarms   []Alarm       // see Rest
	findings []Finding     // see Rest

	mu      sync.Mutex // guards the fields below
	members []*member  // whose commands run, in the order of their starts
	left    leftovers  // of sessions that have ended
	waiting waiting    // for the next session
	// between is the state of the project when the last session ended, if it has
	// left processes and no other has started since: what they change, the next
	// session's review tells. nil otherwise.
	between   *review.State
	lingering map[*os.File]bool // terminals and pipes that background processes have
	joined    int               // how many members there were
	started   int               // how many of them have started
	ending    bool              // no session may start any more
	leaving   bool              // the group ends as soon as nothing runs in it
	// unusedLong: so it does if no session joins; the last one ended long ago.
	unusedLong bool
	unused     *time.Timer     // retires a group that nobody joins; nil before the start
	idle       bool            // it ends as nothing ran in it
	last       *record.Session // of the session that ended last; nil if there is no audit trail
}

// ErrGroupEnded means that a group has ended, so that nothing starts in it.
var ErrGroupEnded = errors.New("the group has ended")

// errNoGroups is the error of a machine where sessions cannot share a sandbox.
var errNoGroups = errors.New("sessions can share a sandbox on Linux only")

// unusedTime is how long a group without sessions waits for the next one: a chat
// may go on after lunch. It does not end what sessions have left in the background.
const unusedTime = time.Hour

// CanShare reports whether sessions can share a sandbox here.
func (s *Spawner) CanShare() bool { return s.Backend.Name() == "linux" }

// StartGroup makes a sandbox for the sessions that are like a request in its
// policy and in Request.Around; nothing else of the request counts. Nothing of the
// user's runs in it before Group.Start. On an error, which is an *Error, no process
// is left running.
func (s *Spawner) StartGroup(ctx context.Context, request Request) (*Group, error) {
	if !s.CanShare() {
		return nil, &Error{Attempt: "start group", Cause: errNoGroups}
	}
	init, theirs, err := platform.NewGroupInit()
	if err != nil {
		return nil, &Error{Attempt: "start group", Cause: err}
	}
	defer theirs.Close()
	g := &Group{spawner: s, init: init, done: make(chan struct{}), lingering: map[*os.File]bool{}}
	g.tool, g.request = request.Tool || request.NoInput || request.Pipe, request
	// Each session brings its own directory, and whether it must have every
	// protection. Others must not fail by what this one asks for.
	request.ID, request.shared, request.Dir, request.Full = NewID(), g, "/", false
	request.Ask, g.id = g.ask, request.ID
	request.Pipe, request.Tool = true, false // it has no terminal, and no history
	streams := func(target *platform.Target, _ Request) (*os.File, func(), error) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, &Error{Attempt: "open", Path: os.DevNull, Cause: cause(err)}
		}
		target.Streams = [3]*os.File{theirs, null, null}
		target.Attr = &syscall.SysProcAttr{Setsid: true}
		return nil, func() { null.Close() }, nil
	}
	running, err := s.start(ctx, request, streams, nil)
	if err != nil {
		init.Release()
		return nil, err
	}
	g.running = running
	g.unused = time.AfterFunc(unusedTime, g.endUnused)
	s.listing.add(running, &request, nil)
	go g.serve()
	running.deliver((*groupObserver)(g), false)
	go g.await()
	return g, nil
}

// serve takes what the init reports.
func (g *Group) serve() {
	if err := g.init.Serve(g.running.process.PID(), func() { go g.endIfIdle() }); err != nil {
		g.running.log.Error("a group is ended", "error", err)
		_ = g.running.process.Signal(unix.SIGKILL)
	}
}

// await waits for the end of the init, which ends the group.
func (g *Group) await() {
	defer close(g.done)
	_, g.err = g.running.end(ending{
		await: g.awaitInit,
		leaderEnded: func(Exit) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.ending = true
			g.unused.Stop()
		},
		drain: g.drain,
	})
	g.noteRest()
}

// awaitInit waits until the init has ended. A command can stop it, and then
// nobody would start and report anything any more, so that is the end, too.
func (g *Group) awaitInit() Exit {
	for {
		status, err := g.running.process.Wait(true)
		switch {
		case err != nil:
			panic(fmt.Sprintf("BUG(sandbox-sidecar): wait for init %d: %v", g.running.process.PID(), err))
		case status.Stopped():
			g.running.log.Warn("a command has stopped the init of its group, so the group is ended")
			_ = g.running.process.Signal(unix.SIGKILL)
		default:
			return exitOf(status)
		}
	}
}

// drain is called once every process of the group is dead. The sessions end.
func (g *Group) drain() {
	g.init.Release()
	g.mu.Lock()
	for file := range g.lingering {
		_ = file.SetReadDeadline(time.Now())
	}
	g.mu.Unlock()
}

// ID names the group in Spawner.List and Spawner.Join.
func (g *Group) ID() string { return g.id }

// Outcome says what the sandbox enforces.
func (g *Group) Outcome() Outcome { return g.running.outcome }

// StartedAt is when the group has started.
func (g *Group) StartedAt() time.Time { return g.running.startedAt }

// Running counts the sessions whose commands run, and all processes but the init.
// ended is true if nothing runs there any more, or is about to be killed.
func (g *Group) Running() (sessions, processes int, ended bool) {
	g.mu.Lock()
	sessions, ended = len(g.members), g.ending
	g.mu.Unlock()
	if ended {
		return 0, 0, true
	}
	everything := lifecycle.Call{Init: g.running.process.PID()}
	processes, err := everything.Left()
	if err != nil {
		g.running.log.Warn("the processes of a group cannot be counted", "error", err)
	}
	return sessions, processes, false
}

// Done is closed when the group has ended.
func (g *Group) Done() <-chan struct{} { return g.done }

// Ending reports whether nothing starts in the group any more.
func (g *Group) Ending() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ending
}

// endedAll reports whether the group has ended what ran in it, or is about to.
func (g *Group) endedAll() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ending && !g.idle
}

// Close ends every process of the group, and returns once none is left. The error
// names the survivors. Sessions of the group end by that.
func (g *Group) Close() (Closed, error) {
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	err := g.running.kill()
	<-g.done
	return closed(g.running, errors.Join(err, g.err))
}

// Refuse has the group start nothing any more. What runs goes on until Close.
func (g *Group) Refuse() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ending = true
}

// Findings are the files that changed while the group lived and that programs
// outside the sandbox act on. It must not be called before Done is closed.
func (g *Group) Findings() []Finding { return g.running.protection.reviewed() }

// Retire ends the group once nothing runs in it.
func (g *Group) Retire() {
	g.mu.Lock()
	g.leaving = true
	g.mu.Unlock()
	g.endIfIdle()
}

// endUnused ends the group once nothing runs in it, unless a session joins before.
func (g *Group) endUnused() {
	g.mu.Lock()
	g.unusedLong = len(g.members) == 0
	g.mu.Unlock()
	g.endIfIdle()
}

// endIfIdle ends a group that is to end, if nothing runs in it.
func (g *Group) endIfIdle() {
	if g.refuseIfIdle(func() bool { return g.leaving || g.unusedLong }) {
		_, _ = g.Close()
	}
}

// RefuseIfIdle has the group start nothing any more if nothing runs in it, and
// reports whether that is so. Close ends it then. One that no session has joined yet
// is not idle: the first one is about to.
func (g *Group) RefuseIfIdle() bool { return g.refuseIfIdle(func() bool { return g.joined > 0 }) }

// refuseIfIdle is RefuseIfIdle, if a condition holds that g.mu guards.
func (g *Group) refuseIfIdle(condition func() bool) bool {
	g.mu.Lock()
	idle, joined := condition() && !g.ending && len(g.members) == 0, g.joined
	g.mu.Unlock()
	if !idle {
		return false
	}
	everything := lifecycle.Call{Init: g.running.process.PID()}
	left, err := everything.Left()
	return err == nil && left == 0 && g.refuse(joined)
}

// refuse has the group refuse sessions, unless one has joined since so many had:
// it may run, or have left something.
func (g *Group) refuse(joined int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ending || g.joined != joined {
		return false
	}
	g.ending, g.idle = true, true
	return true
}
