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

// keeperGroup is a session below a keeper.
type keeperGroup struct {
	*belongings
	command  func() (path string, argv []string)
	tracking Tracking
	log      *slog.Logger
	adopts   bool               // what the keeper leaves becomes this process's child
	forget   func(*keeperGroup) // called when the group was given back

	triesEnclosure bool // the keeper is to find out whether leaders can enclose themselves

	killing sync.Mutex // held while the keeper is asked to kill
	asked   int        // how often it was; guarded by killing
	answers chan keeperKilled

	pausing     sync.Mutex // held while the keeper is asked to hold the session, or to let it go on
	holds       int        // how often it was; guarded by pausing
	heldAnswers chan keeperHeld

	mu       sync.Mutex // guards the fields below, which are set once, and are read freely by who has started the group
	encloses bool       // the leader is to enclose itself
	conn     *keeperConn
	keeper   prey
	leader   prey // no pid where there is none
	session  session
	kept     *kept
	gone     chan struct{} // closed when the keeper has ended
	closed   bool
	closing  atomic.Bool // the keeper is to go
}

const (
	// keeperStartTimeout bounds the wait for the keeper to start a leader; it takes milliseconds.
	keeperStartTimeout = 30 * time.Second
	// keeperGrace is how much later than asked for an answer may come.
	keeperGrace = time.Second
)

var errKeeperGone = errors.New("the keeper has ended")

func (g *keeperGroup) Start(path string, argv []string, attr *os.ProcAttr) (Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn != nil {
		return nil, errors.New("start leader: the group has had one")
	}
	order, files, err := newKeeperStart(path, argv, attr)
	if err != nil {
		return nil, err
	}
	order.Enclosed, order.TryEnclosure = g.encloses, g.triesEnclosure
	if err := g.startKeeper(order.Sys.Setsid, files); err != nil {
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	started, err := g.startLeader(order)
	if err != nil {
		return nil, err
	}
	g.leader = prey{pid: started.PID, birth: started.Birth}
	g.kept = newKept(started.PID, g.conn.send)
	go g.listen()
	g.session = session{id: g.leader.pid, start: strconv.FormatUint(g.leader.birth, 10)}
	if led, err := sessionLedBy(g.leader.pid); err == nil && led.start == g.session.start {
		g.session = led
	}
	if err := g.note(g.session.record()); err != nil {
		giveUp(g.kept)
		return nil, err
	}
	return g.kept, nil
}

// Enclose implements Enclosed.
func (g *keeperGroup) Enclose() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		g.encloses = g.tracking.Enclosable
	}
	return g.encloses
}

// startKeeper starts the keeper, which waits for its order. The lock is held.
func (g *keeperGroup) startKeeper(ownSession bool, files []*os.File) error {
	conn, theirs, err := newKeeperConn()
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
		// A leader that is to stay in the caller's session needs its parent there: without one of its session in another process group a
		// shell that suspends itself would be orphaned, and not be stopped.
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
	g.keeper.pid = process.PID()
	if entry, err := findProcess(process.PID()); err == nil {
		g.keeper.birth = entry.birth
	}
	return g.note(record{Keeper: g.keeper.pid, Start: strconv.FormatUint(g.keeper.birth, 10)})
}

// startLeader gives the order and waits until it was carried out. The lock is held.
func (g *keeperGroup) startLeader(order *keeperStart) (*keeperStarted, error) {
	if err := g.conn.file.SetReadDeadline(time.Now().Add(keeperStartTimeout)); err != nil {
		return nil, fmt.Errorf("talk to keeper: %w", err)
	}
	if err := g.conn.send(keeperOrder{Start: order}); err != nil {
		return nil, fmt.Errorf("talk to keeper: %w", err)
	}
	report, err := g.conn.receive()
	switch {
	case err != nil:
		return nil, fmt.Errorf("talk to keeper: %w", err)
	case report.Errno != 0:
		return nil, &os.PathError{Op: report.Attempt, Path: string(order.Path), Err: report.Errno}
	case report.Started == nil:
		return nil, errors.New("talk to keeper: it says something else than that it has started the leader")
	}
	return report.Started, g.conn.file.SetReadDeadline(time.Time{})
}

// listen takes what the keeper says until its end.
func (g *keeperGroup) listen() {
	for {
		report, err := g.conn.receive()
		if err != nil {
			break
		}
		switch {
		case report.Stopped != nil:
			g.kept.stop(*report.Stopped)
		case report.Ended != nil:
			g.kept.end(*report.Ended)
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
		g.kept.end(killedStatus) // nobody is left to tell more
		return
	}
	g.log.Error("the keeper of a session has died: the session is ended", "leader", g.leader.pid, "orphans_adopted", g.adopts)
	// The kernel has killed the leader with its parent, unless a setuid program has made it somebody else's.
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_, _ = hunt{look: g.lookForLeader, kill: killExactly, pause: sleep}.converge(ctx)
	if _, err := g.killAdopted(ctx); err != nil {
		g.log.Warn("processes of a session whose keeper has died may be left", "error", err)
	}
	g.kept.end(killedStatus)
}

func (g *keeperGroup) lookForLeader() iter.Seq2[prey, error] {
	return func(yield func(prey, error) bool) {
		switch entry, err := findProcess(g.leader.pid); {
		case errors.Is(err, unix.ESRCH) || err == nil && (entry.dead || entry.birth != g.leader.birth):
		default:
			yield(g.leader, err)
		}
	}
}

func (g *keeperGroup) Kill(ctx context.Context) (int, error) {
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
	case errors.Is(err, errKeeperGone):
		killed, err := g.killOrphans(ctx)
		if err != nil {
			err = fmt.Errorf("kill session %d: %w", g.leader.pid, err)
		}
		return killed, err
	case err != nil:
		ctx, cancel := context.WithTimeout(context.Background(), keeperGrace)
		defer cancel()
		killed, below := endBelow(ctx, g.keeper)
		return killed, errors.Join(err, below)
	case answer.Left != nil:
		return answer.Count, fmt.Errorf("kill session %d: %w", g.leader.pid, &Survivors{PIDs: answer.Left})
	}
	return answer.Count, nil
}

// ask lets the keeper kill everything.
func (g *keeperGroup) ask(ctx context.Context, conn *keeperConn, gone <-chan struct{}) (keeperKilled, error) {
	g.asked++
	budget := keeperTimeout
	if deadline, ok := ctx.Deadline(); ok {
		budget = max(0, time.Until(deadline))
	}
	if ctx.Err() != nil {
		budget = 0
	}
	// An error means that the keeper is gone, or about to be: it kills everything when it loses the connection.
	_ = conn.send(keeperOrder{Kill: &keeperKill{ID: g.asked, Milliseconds: budget.Milliseconds()}})
	silence := time.NewTimer(budget + keeperGrace)
	defer silence.Stop()
	for {
		select {
		case answer := <-g.answers:
			if answer.ID == g.asked {
				return answer, nil
			}
		case <-gone:
			return keeperKilled{}, errKeeperGone
		case <-silence.C:
			return keeperKilled{}, fmt.Errorf("kill session %d: its keeper %d does not answer: %w", g.leader.pid, g.keeper.pid, &Survivors{})
		}
	}
}

// killOrphans does what can be done without a keeper: by the session id, by descent, and by adoption.
func (g *keeperGroup) killOrphans(ctx context.Context) (int, error) {
	if g.leader.pid == 0 {
		return 0, nil
	}
	killed, err := g.session.end(ctx)
	if err != nil {
		return killed, err
	}
	adopted, err := g.killAdopted(ctx)
	return killed + adopted, err
}

// killAdopted kills what the keeper has left, whatever its session id: it has become this process's child. All children that are not our own come
// from keepers that have died, because every process that we start for a session has one.
func (g *keeperGroup) killAdopted(ctx context.Context) (int, error) {
	if !g.adopts {
		return 0, nil
	}
	select {
	case <-g.gone: // its children are given away before it can be waited for
	case <-ctx.Done():
	}
	return endOrphans(ctx)
}

// Close lets the keeper go. It goes when nobody is left.
func (g *keeperGroup) Close() error {
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
	return g.giveBack()
}

// dismiss ends the keeper. The lock is held.
func (g *keeperGroup) dismiss() error {
	g.closing.Store(true)
	g.conn.file.Close()
	select {
	case <-g.gone:
	case <-time.After(closeTimeout):
		return fmt.Errorf("let keeper %d go: %w", g.keeper.pid, &Survivors{})
	}
	for _, ended := range []int{g.leader.pid, g.keeper.pid} {
		if ended == 0 {
			continue
		}
		if err := g.note(record{Ended: ended}); err != nil {
			return err
		}
	}
	return nil
}

func (g *keeperGroup) Tracking() Tracking {
	return g.warned(g.tracking)
}
