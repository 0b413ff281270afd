package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// subreaperGroup is a session below a subreaper.
type subreaperGroup struct {
	note    func(Record) error // writes to the journal before something comes to be; nil: to none
	command func() (path string, argv []string)
	capable bool // leaders can use signal domains
	log     *slog.Logger
	adopts  bool                  // what the subreaper leaves becomes this process's child
	forget  func(*subreaperGroup) // called when the group was given back

	triesDomain bool // the subreaper is to find out whether leaders can enter one

	killing sync.Mutex // held while the subreaper is asked to kill
	asked   int        // how often it was; guarded by killing
	answers chan subreaperKilled

	pausing     sync.Mutex // held while the subreaper is asked to hold the session, or to let it go on
	holds       int        // how often it was; guarded by pausing
	heldAnswers chan subreaperHeld

	mu        sync.Mutex // guards the fields below, which are set once, and are read freely by who has started the group
	inDomain  bool       // the leader is to enter a signal domain
	conn      *subreaperConn
	subreaper processID
	leader    processID // no pid where there is none
	session   Session
	process   *subreapedLeader
	gone      chan struct{} // closed when the subreaper has ended
	closed    bool
	closing   atomic.Bool // the subreaper is to go
}

const (
	// subreaperStartTimeout bounds the wait for the subreaper to start a
	// leader; it takes milliseconds.
	subreaperStartTimeout = 30 * time.Second
	// subreaperGrace is how much later than asked for an answer may come.
	subreaperGrace = time.Second
)

var errSubreaperGone = errors.New("the subreaper has ended")

func (g *subreaperGroup) Start(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn != nil {
		return nil, errors.New("start leader: the group has had one")
	}
	order, files, err := newSubreaperStart(path, argv, attr)
	if err != nil {
		return nil, err
	}
	order.InDomain, order.TryDomain = g.inDomain, g.triesDomain
	if err := g.startSubreaper(order.Sys.Setsid, files); err != nil {
		return nil, fmt.Errorf("start subreaper: %w", err)
	}
	started, err := g.startLeader(order)
	if err != nil {
		return nil, err
	}
	g.leader = processID{pid: started.PID, birth: started.Birth}
	g.process = newSubreapedLeader(started.PID, g.conn.send)
	go g.listen()
	g.session = Session{ID: g.leader.pid, Start: strconv.FormatUint(g.leader.birth, 10)}
	if led, err := SessionLedBy(g.leader.pid); err == nil && led.Start == g.session.Start {
		g.session = led
	}
	if err := g.write(g.session.Record()); err != nil {
		giveUp(g.process)
		return nil, err
	}
	return g.process, nil
}

// UseSignalDomain has the leader that is to be started enter a signal domain, if
// leaders can do that here, and reports whether it will. After Start it only
// reports.
func (g *subreaperGroup) UseSignalDomain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		g.inDomain = g.capable
	}
	return g.inDomain
}

// startSubreaper starts the subreaper, which waits for its order. The lock is
// held.
func (g *subreaperGroup) startSubreaper(ownSession bool, files []*os.File) error {
	conn, theirs, err := newSubreaperConn()
	if err != nil {
		return err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		conn.file.Close()
		return err
	}
	defer null.Close()
	path, argv := g.command()
	process, err := Start(path, argv, &os.ProcAttr{
		Files: append([]*os.File{null, null, os.Stderr, theirs}, files...),
		Env:   []string{},
		// A leader that is to stay in the caller's session needs its parent
		// there: without one of its session in another process group a shell
		// that suspends itself would be orphaned, and not be stopped.
		Sys: &syscall.SysProcAttr{Setsid: ownSession},
	})
	if err != nil {
		conn.file.Close()
		return err
	}
	g.conn, g.gone = conn, make(chan struct{})
	go func() {
		defer close(g.gone)
		for {
			status, err := process.Wait(true)
			if err != nil || !status.Stopped() {
				return
			}
			_ = process.Signal(unix.SIGCONT) // an unconfined session has stopped it
		}
	}()
	g.subreaper.pid = process.PID()
	if entry, err := findProcess(process.PID()); err == nil {
		g.subreaper.birth = entry.birth
	}
	return g.write(NewRecord(kindSubreaper, strconv.Itoa(g.subreaper.pid), subreaperData{Birth: g.subreaper.birth}))
}

// startLeader gives the order and waits until it was carried out. The lock is
// held.
func (g *subreaperGroup) startLeader(order *subreaperStart) (*subreaperStarted, error) {
	if err := g.conn.file.SetReadDeadline(time.Now().Add(subreaperStartTimeout)); err != nil {
		return nil, fmt.Errorf("talk to subreaper: %w", err)
	}
	if err := g.conn.send(subreaperOrder{Start: order}); err != nil {
		return nil, fmt.Errorf("talk to subreaper: %w", err)
	}
	report, err := g.conn.receive()
	switch {
	case err != nil:
		return nil, fmt.Errorf("talk to subreaper: %w", err)
	case report.Errno != 0:
		return nil, &os.PathError{Op: report.Attempt, Path: string(order.Path), Err: report.Errno}
	case report.Started == nil:
		return nil, errors.New("talk to subreaper: it says something else than that it has started the leader")
	}
	return report.Started, g.conn.file.SetReadDeadline(time.Time{})
}

// listen takes what the subreaper says until its end.
func (g *subreaperGroup) listen() {
	for {
		report, err := g.conn.receive()
		if err != nil {
			break
		}
		switch {
		case report.Stopped != nil:
			g.process.stop(*report.Stopped)
		case report.Ended != nil:
			g.process.end(*report.Ended)
		case report.Killed != nil:
			select {
			case g.answers <- *report.Killed:
			default: // to a question that nobody waits for any more
			}
		case report.Held != nil:
			select {
			case g.heldAnswers <- *report.Held:
			default: // likewise
			}
		}
	}
	if g.closing.Load() {
		<-g.gone
		g.process.end(killedStatus) // nobody is left to tell more
		return
	}
	g.log.Error("the subreaper of a session has died: the session is ended", "leader", g.leader.pid, "orphans_adopted",
		g.adopts)
	// The kernel has killed the leader with its parent, unless a setuid program
	// has made it somebody else's.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = killLoop{look: g.lookForLeader, kill: killExactly, pause: sleep}.converge(ctx)
	if _, err := g.killAdopted(ctx); err != nil {
		g.log.Warn("processes of a session whose subreaper has died may be left", "error", err)
	}
	g.process.end(killedStatus)
}

func (g *subreaperGroup) lookForLeader() iter.Seq2[processID, error] {
	return func(yield func(processID, error) bool) {
		switch entry, err := findProcess(g.leader.pid); {
		case errors.Is(err, unix.ESRCH) || err == nil && (entry.dead || entry.birth != g.leader.birth):
		default:
			yield(g.leader, err)
		}
	}
}

func (g *subreaperGroup) Kill(ctx context.Context) (int, error) {
	g.mu.Lock()
	conn, gone, closed := g.conn, g.gone, g.closed
	g.mu.Unlock()
	if conn == nil || closed {
		return 0, nil
	}
	g.killing.Lock()
	defer g.killing.Unlock()
	answer, err := g.ask(ctx, conn, gone)
	switch {
	case errors.Is(err, errSubreaperGone):
		killed, err := g.killOrphans(ctx)
		if err != nil {
			err = fmt.Errorf("kill session %d: %w", g.leader.pid, err)
		}
		return killed, err
	case err != nil:
		ctx, cancel := context.WithTimeout(context.Background(), subreaperGrace)
		defer cancel()
		killed, below := endBelow(ctx, g.subreaper)
		return killed, errors.Join(err, below)
	case answer.Left != nil:
		return answer.Count, fmt.Errorf("kill session %d: %w", g.leader.pid, &Survivors{PIDs: answer.Left})
	}
	return answer.Count, nil
}

// ask lets the subreaper kill everything.
func (g *subreaperGroup) ask(ctx context.Context, conn *subreaperConn, gone <-chan struct{}) (subreaperKilled, error) {
	g.asked++
	budget := subreaperTimeout
	if deadline, ok := ctx.Deadline(); ok {
		budget = max(0, time.Until(deadline))
	}
	if ctx.Err() != nil {
		budget = 0
	}
	// An error means that the subreaper is gone, or about to be: it kills
	// everything when it loses the connection.
	_ = conn.send(subreaperOrder{Kill: &subreaperKill{ID: g.asked, Milliseconds: budget.Milliseconds()}})
	silence := time.NewTimer(budget + subreaperGrace)
	defer silence.Stop()
	for {
		select {
		case answer := <-g.answers:
			if answer.ID == g.asked {
				return answer, nil
			}
		case <-gone:
			return subreaperKilled{}, errSubreaperGone
		case <-silence.C:
			return subreaperKilled{}, fmt.Errorf("kill session %d: its subreaper %d does not answer: %w", g.leader.pid,
				g.subreaper.pid, &Survivors{})
		}
	}
}

// killOrphans does what can be done without a subreaper: by the session id, by
// descent, and by adoption.
func (g *subreaperGroup) killOrphans(ctx context.Context) (int, error) {
	if g.leader.pid == 0 {
		return 0, nil
	}
	killed, err := g.session.End(ctx)
	if err != nil {
		return killed, err
	}
	adopted, err := g.killAdopted(ctx)
	return killed + adopted, err
}

// killAdopted kills what the subreaper has left, whatever its session id: it
// has become this process's child. All children that are not our own come from
// subreapers that have died, because every process that we start for a session
// has one.
func (g *subreaperGroup) killAdopted(ctx context.Context) (int, error) {
	if !g.adopts {
		return 0, nil
	}
	select {
	case <-g.gone: // its children are given away before it can be waited for
	case <-ctx.Done():
	}
	return endOrphans(ctx)
}

// Close lets the subreaper go. It goes when nobody is left.
func (g *subreaperGroup) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	if g.conn != nil {
		if err := g.dismiss(); err != nil {
			return err
		}
	}
	g.closed = true
	g.forget(g)
	return nil
}

// dismiss ends the subreaper. The lock is held.
func (g *subreaperGroup) dismiss() error {
	g.closing.Store(true)
	g.conn.file.Close()
	select {
	case <-g.gone:
	case <-time.After(closeTimeout):
		return fmt.Errorf("let subreaper %d go: %w", g.subreaper.pid, &Survivors{})
	}
	var failures []error
	if g.leader.pid != 0 {
		failures = append(failures, g.write(EndedSession(g.leader.pid)))
	}
	if g.subreaper.pid != 0 {
		failures = append(failures, g.write(Ended(kindSubreaper, strconv.Itoa(g.subreaper.pid))))
	}
	return errors.Join(failures...)
}

func (g *subreaperGroup) write(r Record) error {
	if g.note == nil {
		return nil
	}
	return g.note(r)
}
