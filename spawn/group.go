package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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
	untold  []telling
	unnoted []platform.Denial // for the next one's audit trail alone, each once
	// between is the state of the project when the last session ended, if it has
	// left processes and no other has started since: what they change, the next
	// session's review tells. nil otherwise.
	between   *review.State
	lingering map[*os.File]bool // terminals and pipes that background processes have
	joined    int               // how many members there were
	ending    bool              // no session may start any more
	leaving   bool              // the group ends as soon as nothing runs in it
	unused    *time.Timer       // retires a group that nobody joins; nil before the start
	idle      bool              // it ends as nothing ran in it
	last      *record.Session   // of the session that ended last; nil if there is no audit trail
}

// member is a session of a group.
type member struct {
	running *running
	call    *call
	since   *review.State // what Group.between was before it joined
}

// ErrGroupEnded means that a group has ended, so that nothing starts in it.
var ErrGroupEnded = errors.New("the group has ended")

// MayHaveRun reports whether a session that could not be started in a group may have
// run nevertheless.
func MayHaveRun(err error) bool {
	return errors.Is(err, platform.ErrMayHaveRun) || errors.Is(err, platform.ErrSilentInit)
}

// errNoGroups is the error of a machine where sessions cannot share a sandbox.
var errNoGroups = errors.New("sessions can share a sandbox on Linux only")

// unusedTime is how long a group without sessions waits for the next one: a chat
// may go on after lunch. It does not end what sessions have left in the background.
const unusedTime = time.Hour

// telling tells a session something. own is false if it is about a process that
// another session has left.
type telling func(r *running, own bool)

// maxUntold bounds what is kept for a group's next session.
const maxUntold = 256

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
	g.unused = time.AfterFunc(unusedTime, g.Retire)
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
	return m, nil
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
	if g.unused != nil {
		g.unused.Stop()
	}
	for _, tell := range g.untold {
		tell(r, false)
	}
	for _, d := range g.unnoted {
		r.record.Denied(d)
	}
	g.untold, g.unnoted = nil, nil
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
	g.mu.Unlock()
	r.process, r.master, r.startedAt = started, master, time.Now()
	r.record.Started(started.PID(), r.outcome.Confined, r.outcome.Protections())
	r.kept.Started(started.PID())
	g.spawner.listing.add(r, &request, g)
	return nil
}

// leave notes that a member's command has ended, or was never started.
func (g *Group) leave(m *member) {
	joined, last := g.remove(m)
	if !last || m.running.protection == nil || m.call.process == nil || m.call.process.Alone() {
		return
	}
	between := review.Take(m.running.policy) // it takes long in a large project
	between.Remember(g.spawner.Met)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.joined == joined { // else the session that has joined knows the project's state
		g.between = between
	}
}

// remove removes a member. last is true if it was the last one, and joined is how
// many there were.
func (g *Group) remove(m *member) (joined int, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	if m.call.process != nil {
		g.last = m.running.record
	} else if g.between == nil {
		g.between = m.since // it was not started: the next one tells that
	}
	if len(g.members) > 0 || g.ending {
		return g.joined, false
	}
	if g.unused != nil {
		g.unused.Reset(unusedTime)
	}
	return g.joined, true
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

// endIfIdle ends a group that is to end, if nothing runs in it.
func (g *Group) endIfIdle() {
	g.mu.Lock()
	idle, joined := g.leaving && !g.ending && len(g.members) == 0, g.joined
	g.mu.Unlock()
	if !idle {
		return
	}
	everything := lifecycle.Call{Init: g.running.process.PID()}
	if left, err := everything.Left(); err == nil && left == 0 && g.refuse(joined) {
		_, _ = g.Close()
	}
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

// sharedLocalhost is the group's, and is closed with it.
type sharedLocalhost struct{ platform.Localhost }

// Close does nothing.
func (sharedLocalhost) Close() error { return nil }

// call is the part of a group that is one session's: its lifecycle.Group.
type call struct {
	shared  *Group
	process *platform.Call // guarded by shared.mu until the session has started
	ask     func(context.Context, Denial) Answer
	// patience is guarded by the group's questions.
	patience patience

	mu         sync.Mutex // guards the fields below
	closing    bool       // its processes are to be killed, also in the background
	background int
}

var _ lifecycle.Group = (*call)(nil)

// Guard does nothing, as the group is guarded.
func (*call) Guard() error { return nil }

// Start is never called: the init starts the command.
func (*call) Start(string, []string, *os.ProcAttr) (lifecycle.Process, error) {
	return nil, errors.New("BUG(sandbox-sidecar): a call is started by its group's init")
}

// MakeDir makes no directory: those of the group are shared.
func (*call) MakeDir() (string, error) {
	return "", errors.New("BUG(sandbox-sidecar): a call has no directory of its own")
}

// Tracking is the group's.
func (c *call) Tracking() lifecycle.Tracking { return c.shared.running.group.Tracking() }

// Close gives nothing back.
func (c *call) Close() error {
	go c.shared.endIfIdle()
	return nil
}

// close has Kill end the background processes, too.
func (c *call) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

// Kill ends the processes of a command that is closed. Of one that has ended by
// itself it counts those that it has left, which stay.
func (c *call) Kill(ctx context.Context) (killed int, err error) {
	if c.process == nil || isClosed(c.shared.init.Released()) {
		return 0, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	own := lifecycle.Call{Leader: c.process.PID(), Init: c.shared.running.process.PID()}
	if c.closing {
		return own.End(ctx)
	}
	if !c.process.Alone() {
		if c.background, err = own.Left(); err != nil {
			c.shared.running.log.Warn("background processes cannot be counted", "error", err)
		}
	}
	return 0, nil
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// left is how many processes the session has left in the background.
func (c *call) left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.background
}

// isOpen reports whether a process has the other end of a terminal or pipe open.
// The processes that a session has left tell less: one that has made a session of
// its own is not counted.
func isOpen(file *os.File) bool {
	raw, err := file.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, 0)
		open = err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) == 0
	})
	return err == nil && open
}

// keepReading takes what background processes still print, and drops it: if
// nobody read it, they would wait for ever or fail. It closes the file.
func (g *Group) keepReading(file *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if isClosed(g.init.Released()) {
		file.Close()
		return
	}
	_ = file.SetReadDeadline(time.Time{})
	g.lingering[file] = true
	go func() {
		_, _ = io.Copy(io.Discard, file)
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.lingering, file)
		file.Close()
	}()
}
