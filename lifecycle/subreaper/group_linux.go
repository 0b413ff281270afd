package subreaper

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

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/journal"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/session"
)

// Group is a session below a subreaper.
type Group struct {
	note    func(journal.Record) error // writes to the journal; may be nil
	command func() (path string, argv []string)
	capable bool // leaders can use signal domains
	log     *slog.Logger
	adopts  bool         // orphans of a dead subreaper become children of this process
	forget  func(*Group) // called when the group is closed

	triesDomain bool // the subreaper is to find out whether leaders can use signal domains

	killing sync.Mutex // held while the subreaper is asked to kill
	asked   int        // how often it was asked; guarded by killing
	answers chan killedReport

	pausing     sync.Mutex // held while the subreaper is asked to pause or resume the session
	holds       int        // how often it was asked; guarded by pausing
	heldAnswers chan heldReport

	// mu guards the fields below. They are set once, and the goroutine that
	// started the group reads them freely.
	mu        sync.Mutex
	inDomain  bool // the leader is to enter a signal domain
	conn      *connection
	subreaper proc.ID
	leader    proc.ID // PID is 0 if there is none
	session   session.Session
	process   *leaderProcess
	gone      chan struct{} // closed when the subreaper has ended
	closed    bool
	closing   atomic.Bool // the subreaper was ordered to end
}

const (
	// startTimeout bounds the wait for the subreaper to start a leader; it
	// takes milliseconds.
	startTimeout = 30 * time.Second
	// endTimeout bounds the end of a session without a subreaper, and of a
	// subreaper without a session.
	endTimeout = 5 * time.Second
	// grace is how much later than its deadline an answer may come.
	grace = time.Second
)

var errGone = errors.New("the subreaper has ended")

// Start lets the subreaper start the leader. A group has one leader.
func (g *Group) Start(path string, argv []string, attr *os.ProcAttr) (proc.Process, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn != nil {
		return nil, errors.New("start leader: the group has one already")
	}
	order, files, err := newStartOrder(path, argv, attr)
	if err != nil {
		return nil, err
	}
	order.InDomain, order.TryDomain = g.inDomain, g.triesDomain
	if err := g.startSubreaper(order.Sys.Setsid, files); err != nil {
		return nil, fmt.Errorf("start subreaper: %w", err)
	}
	started, err := g.startLeader(order)
	if err != nil {
		// Nobody reads its later answers. It ends, with what it may still
		// start, because it loses the connection.
		g.conn.file.Close()
		return nil, err
	}
	g.leader = proc.ID{PID: started.PID, Birth: started.Birth}
	g.process = newLeaderProcess(started.PID, g.conn.send)
	go g.listen()
	g.session = session.Session{ID: g.leader.PID, Start: strconv.FormatUint(g.leader.Birth, 10)}
	if led, err := session.Of(g.leader.PID); err == nil && led.Start == g.session.Start {
		g.session = led
	}
	if err := g.write(g.session.Record()); err != nil {
		proc.GiveUp(g.process)
		return nil, err
	}
	return g.process, nil
}

// UseSignalDomain has the leader enter a signal domain, if leaders can do that
// here, and reports whether it will. After Start it only reports.
func (g *Group) UseSignalDomain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conn == nil {
		g.inDomain = g.capable
	}
	return g.inDomain
}

// startSubreaper starts the subreaper, which waits for its order. The lock is
// held.
func (g *Group) startSubreaper(ownSession bool, files []*os.File) error {
	conn, theirs, err := newConnection()
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
	process, err := proc.Start(path, argv, &os.ProcAttr{
		Files: append([]*os.File{null, null, os.Stderr, theirs}, files...),
		Env:   []string{},
		// A leader that stays in the caller's session needs its parent there.
		// Otherwise its process group would be orphaned, and a shell that
		// suspends itself would not be stopped.
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
	g.subreaper.PID = process.PID()
	if entry, err := proc.Find(process.PID()); err == nil {
		g.subreaper.Birth = entry.Birth
	}
	return g.write(journal.NewRecord(kind, strconv.Itoa(g.subreaper.PID), recordData{Birth: g.subreaper.Birth}))
}

// startLeader orders the start of the leader and waits for it. The lock is
// held.
func (g *Group) startLeader(order *startOrder) (*startedReport, error) {
	if err := g.conn.file.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return nil, fmt.Errorf("subreaper: %w", err)
	}
	if err := g.conn.send(orderMessage{Start: order}); err != nil {
		return nil, fmt.Errorf("subreaper: %w", err)
	}
	report, err := g.conn.receive()
	switch {
	case err != nil:
		return nil, fmt.Errorf("subreaper: %w", err)
	case report.Errno != 0:
		return nil, &os.PathError{Op: report.Attempt, Path: string(order.Path), Err: report.Errno}
	case report.Started == nil:
		return nil, errors.New("subreaper: unexpected reply to start")
	}
	return report.Started, g.conn.file.SetReadDeadline(time.Time{})
}

// listen handles the subreaper's messages until its end.
func (g *Group) listen() {
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
			default: // nobody waits for this answer any more
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
		g.process.end(killedStatus) // nobody can report more
		return
	}
	g.log.Error("the subreaper of a session has died: the session is ended", "leader", g.leader.PID, "orphans_adopted",
		g.adopts)
	// The kernel has killed the leader with its parent, unless it has executed
	// a setuid program.
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_, _ = proc.KillLoop{Find: g.lookForLeader, Kill: proc.Kill, Pause: proc.Sleep}.Run(ctx)
	if _, err := g.killAdopted(ctx); err != nil {
		g.log.Warn("processes of a session may be left, because its subreaper has died", "error", err)
	}
	g.process.end(killedStatus)
}

func (g *Group) lookForLeader() iter.Seq2[proc.ID, error] {
	return func(yield func(proc.ID, error) bool) {
		switch entry, err := proc.Find(g.leader.PID); {
		case errors.Is(err, unix.ESRCH) || err == nil && (entry.Dead || entry.Birth != g.leader.Birth):
		default:
			yield(g.leader, err)
		}
	}
}

// Kill kills every process of the group and returns their number once none is
// left.
func (g *Group) Kill(ctx context.Context) (int, error) {
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
	case errors.Is(err, errGone):
		killed, err := g.killOrphans(ctx)
		if err != nil {
			err = fmt.Errorf("kill session %d: %w", g.leader.PID, err)
		}
		return killed, err
	case err != nil:
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		killed, below := endBelow(ctx, g.subreaper)
		return killed, errors.Join(err, below)
	case answer.Left != nil:
		return answer.Count, fmt.Errorf("kill session %d: %w", g.leader.PID, &proc.Survivors{PIDs: answer.Left})
	}
	return answer.Count, nil
}

// ask has the subreaper kill everything.
func (g *Group) ask(ctx context.Context, conn *connection, gone <-chan struct{}) (killedReport, error) {
	g.asked++
	budget := killTimeout
	if deadline, ok := ctx.Deadline(); ok {
		budget = max(0, time.Until(deadline))
	}
	if ctx.Err() != nil {
		budget = 0
	}
	// After an error the subreaper is gone, or about to end: it kills
	// everything when it loses the connection.
	_ = conn.send(orderMessage{Kill: &killOrder{ID: g.asked, Milliseconds: budget.Milliseconds()}})
	silence := time.NewTimer(budget + grace)
	defer silence.Stop()
	for {
		select {
		case answer := <-g.answers:
			if answer.ID == g.asked {
				return answer, nil
			}
		case <-gone:
			return killedReport{}, errGone
		case <-silence.C:
			return killedReport{}, fmt.Errorf("kill session %d: its subreaper %d does not answer: %w", g.leader.PID,
				g.subreaper.PID, &proc.Survivors{})
		}
	}
}

// killOrphans kills without a subreaper: by the session id, by descent, and by
// adoption.
func (g *Group) killOrphans(ctx context.Context) (int, error) {
	if g.leader.PID == 0 {
		return 0, nil
	}
	killed, err := g.session.End(ctx)
	if err != nil {
		return killed, err
	}
	adopted, err := g.killAdopted(ctx)
	return killed + adopted, err
}

// killAdopted kills the orphans of the subreaper that have become children of
// this process, whatever their session id. Every process that we start for a
// session has a subreaper, so foreign children come from subreapers that have
// died.
func (g *Group) killAdopted(ctx context.Context) (int, error) {
	if !g.adopts {
		return 0, nil
	}
	select {
	case <-g.gone: // until it has ended, its children are not ours
	case <-ctx.Done():
	}
	return proc.EndOrphans(ctx)
}

// Close tells the subreaper to end. It ends when no process of the session is
// left.
func (g *Group) Close() error {
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
func (g *Group) dismiss() error {
	g.closing.Store(true)
	g.conn.file.Close()
	select {
	case <-g.gone:
	case <-time.After(endTimeout):
		return fmt.Errorf("end subreaper %d: %w", g.subreaper.PID, &proc.Survivors{})
	}
	var failures []error
	if g.leader.PID != 0 {
		failures = append(failures, g.write(session.Ended(g.leader.PID)))
	}
	if g.subreaper.PID != 0 {
		failures = append(failures, g.write(journal.Ended(kind, strconv.Itoa(g.subreaper.PID))))
	}
	return errors.Join(failures...)
}

func (g *Group) write(r journal.Record) error {
	if g.note == nil {
		return nil
	}
	return g.note(r)
}
