//go:build unix

package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
)

// ErrInitGone means that the init of a group has ended, or was stopped, before it
// had a call. It will start nothing more.
var ErrInitGone = errors.New("the process that starts the group's commands has ended")

// ErrMayHaveRun means that the init of a group has ended before it reported what
// became of a call. A command can end it before its own start is reported.
var ErrMayHaveRun = errors.New(
	"the group ended while the command was being started, so the command may have run")

// GroupInit is the sidecar's side of a group's init, which starts commands in the
// group's sandbox. Its methods may be called from several goroutines.
type GroupInit struct {
	conn     *conn
	gone     chan struct{} // closed once the init reports nothing more
	released chan struct{} // closed by Release
	release  sync.Once
	timeout  time.Duration // for sending a call, and for its answer
	sending  chan struct{} // holds something while a call is written
	cut      atomic.Bool   // a part of a call was written, and the rest cannot be

	mu    sync.Mutex // guards the fields below
	pid   int        // the init's; 0 before Serve
	calls map[int]*Call
	last  int
}

// lastReports is how long Release waits for what the init has reported. It is
// there already, unless a process survives.
const lastReports = time.Second

// ErrSilentInit means that the init of a group has not answered in time. It may yet
// start what it was sent.
var ErrSilentInit = errors.New(
	"the process that starts the group's commands does not answer, so the command may have run")

var errCut = errors.New("talk to init of group: a part of a call was sent")

// NewGroupInit returns the sidecar's side, and the file that becomes the init's
// standard input. Call Serve, and at the end Release.
func NewGroupInit() (init *GroupInit, theirs *os.File, err error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, nil, fmt.Errorf("make socket of group: %w", err)
	}
	return &GroupInit{
		conn: ours, gone: make(chan struct{}), released: make(chan struct{}), calls: map[int]*Call{},
		timeout: stageTimeout, sending: make(chan struct{}, 1),
	}, theirs, nil
}

// Command is the command line of an init. The program is that of the stage.
func (*GroupInit) Command(backend Backend) (path string, argv []string) {
	path, _ = backend.Stage()
	return path, []string{"sandbox-sidecar", handshake.GroupInit}
}

// Call is a command that a group's init has started.
type Call struct {
	init     *GroupInit
	pid      int
	terminal *os.File
	mu       sync.Mutex  // held while process is used, once the call was answered
	process  *os.Process // nil once it was given back

	answered chan struct{} // closed once the fields above or failure are set
	failure  error
	ended    chan struct{} // closed once the fields below are set
	status   syscall.WaitStatus
	alone    bool
}

// Start starts a command in a session of its own. streams are its standard
// streams, unless the order asks for a terminal; the caller closes them. Of the
// order, only Program, Argv, Env, Dir and Terminal count. controlling makes
// standard output the controlling terminal. The error is a *Failure if the init
// could not carry out the order, ErrInitGone if there is no init any more, and
// ErrMayHaveRun if it ended meanwhile.
// A file system that does not answer can hold up the init, and with it all
// starts. Each waits half a minute.
func (g *GroupInit) Start(ctx context.Context, order Order, streams []*os.File, controlling bool) (*Call, error) {
	call := &Call{init: g, answered: make(chan struct{}), ended: make(chan struct{})}
	g.mu.Lock()
	g.last++
	id := g.last
	g.calls[id] = call
	g.mu.Unlock()
	message, err := json.Marshal(handshake.Call{
		ID: id, Program: handshake.RawString(order.Program), Argv: handshake.RawStrings(order.Argv),
		Env: handshake.RawStrings(order.Env), Dir: handshake.RawString(order.Dir), Terminal: order.Terminal,
		Controlling: controlling,
	})
	if err == nil && len(message) > handshake.MaxCall {
		err = NewFailure(handshake.StepProgram, order.Program, unix.E2BIG)
	}
	if err == nil {
		err = g.send(ctx, message, streams)
	}
	if err != nil {
		g.forget(id)
		return nil, err
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	select {
	case <-call.answered:
		return call.result()
	case <-g.gone:
		select {
		case <-call.answered: // the last report
			return call.result()
		default:
			return nil, ErrMayHaveRun
		}
	case <-timer.C:
		go call.kill()
		return nil, ErrSilentInit
	case <-ctx.Done():
		call.abandon()
		return nil, ctx.Err()
	}
}

// NewFailure is handshake.NewFailure.
func NewFailure(step handshake.Step, path string, err error) *Failure {
	return handshake.NewFailure(step, path, err)
}

func (c *Call) result() (*Call, error) {
	if c.failure != nil {
		return nil, c.failure
	}
	return c, nil
}

// abandon ends a call whose caller has gone. Mostly nothing is left of it when it
// returns; if the init does not answer, that comes later.
func (c *Call) abandon() {
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		c.kill()
	}()
	timer := time.NewTimer(lastReports)
	defer timer.Stop()
	select {
	case <-killed:
	case <-timer.C:
	}
}

// kill ends a call that nobody waits for any more, once it has started.
func (c *Call) kill() {
	select {
	case <-c.answered:
	case <-c.init.gone:
		return
	}
	if c.failure != nil {
		return
	}
	if c.terminal != nil {
		c.terminal.Close()
	}
	c.init.mu.Lock()
	own := lifecycle.Call{Leader: c.pid, Init: c.init.pid}
	c.init.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), c.init.timeout)
	defer cancel()
	_, _ = own.End(ctx) // what survives ends with the group
}

// send writes a message, with descriptors at its first byte. Nobody is interrupted
// while he writes, as the init could not understand what follows.
func (g *GroupInit) send(ctx context.Context, message []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, file := range files {
		fds[i] = int(file.Fd())
	}
	timer := time.NewTimer(g.timeout)
	defer timer.Stop()
	select {
	case g.sending <- struct{}{}:
	case <-g.gone:
		return ErrInitGone
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrSilentInit
	}
	defer func() { <-g.sending }()
	raw, err := g.conn.SyscallConn()
	if err != nil || g.conn.SetWriteDeadline(time.Now().Add(g.timeout)) != nil {
		return ErrInitGone
	}
	whole := len(message)
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for len(message) > 0 {
			n, err := unix.SendmsgN(int(fd), message, rights, nil, 0) // Go ignores SIGPIPE of sockets
			switch {
			case errors.Is(err, unix.EINTR):
			case errors.Is(err, unix.EAGAIN):
				return false
			case err != nil:
				failed = err
				return true
			default:
				message, rights = message[n:], nil
			}
		}
		return true
	})
	switch {
	case failed == nil && errors.Is(err, os.ErrDeadlineExceeded):
		if len(message) < whole {
			g.cut.Store(true)
			g.conn.Close() // Serve ends by that
		}
		return ErrSilentInit
	case err != nil || failed != nil:
		return ErrInitGone
	}
	return nil
}

func (g *GroupInit) find(id int) *Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[id]
}

func (g *GroupInit) forget(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, id)
}

// Serve takes the reports of the init with a process id until it is gone. It calls
// idle when the last background process has ended. It returns the reason if the
// init can no longer be talked to; end it then.
func (g *GroupInit) Serve(pid int, idle func()) error {
	defer close(g.gone)
	defer g.conn.drop()
	defer g.giveBack()
	g.mu.Lock()
	g.pid = pid
	g.mu.Unlock()
	decoder := json.NewDecoder(g.conn)
	for {
		var report handshake.CallReport
		if decoder.Decode(&report) != nil {
			if g.cut.Load() {
				return errCut
			}
			return nil
		}
		if report.ID == 0 && report.Alone {
			idle()
			continue
		}
		call := g.find(report.ID)
		if call == nil {
			return fmt.Errorf("talk to init of group: no call has the number %d", report.ID)
		}
		switch {
		case report.Started > 0:
			call.pid = report.Started
			if report.Terminal {
				if len(g.conn.passed) == 0 {
					return errors.New("talk to init of group: a terminal is missing")
				}
				call.terminal, g.conn.passed = g.conn.passed[0], g.conn.passed[1:]
			}
			// It never fails on Unix. If the command has ended already, the next
			// report says so, and then nobody signals it.
			process, _ := os.FindProcess(call.pid)
			call.mu.Lock()
			call.process = process
			call.mu.Unlock()
			close(call.answered)
		case report.Failure != nil:
			call.failure = report.Failure
			close(call.answered)
			g.forget(report.ID)
		case report.Ended != nil:
			call.status, call.alone = syscall.WaitStatus(*report.Ended), report.Alone
			close(call.ended)
			call.giveBack()
			g.forget(report.ID)
		}
	}
}

// giveBack gives back the descriptors of calls that nothing is reported of any
// more.
func (g *GroupInit) giveBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, call := range g.calls {
		call.giveBack()
	}
}

// giveBack closes the descriptor of a command that nobody signals any more.
func (c *Call) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process != nil {
		_ = c.process.Release() // it only fails if it was released
		c.process = nil
	}
}

// Released is closed by Release.
func (g *GroupInit) Released() <-chan struct{} { return g.released }

// Release says that no process of the group is left. Calls whose end was not
// reported count as killed from then on.
func (g *GroupInit) Release() {
	g.release.Do(func() {
		close(g.released)
		g.mu.Lock()
		served := g.pid > 0
		g.mu.Unlock()
		if served {
			_ = g.conn.SetReadDeadline(time.Now().Add(lastReports))
			<-g.gone // the init's end of the socket is closed, so that Serve has read all
		}
		g.conn.Close()
	})
}

// PID is the command's process id.
func (c *Call) PID() int { return c.pid }

// Terminal is the master of the terminal that the init has opened, which the
// caller closes; nil if it opened none.
func (c *Call) Terminal() *os.File { return c.terminal }

// Wait waits until the command has ended, and returns its status. Stops are not
// reported. If the group ends first, the status is that of a killed process.
func (c *Call) Wait(bool) (syscall.WaitStatus, error) {
	select {
	case <-c.ended:
		return c.status, nil
	case <-c.init.released:
	}
	<-c.init.gone // what was reported before counts
	select {
	case <-c.ended:
		return c.status, nil
	default:
		return syscall.WaitStatus(unix.SIGKILL), nil
	}
}

// Alone reports whether no process but the init was left in the group when the
// command ended. It must not be called before Wait has returned.
func (c *Call) Alone() bool { return c.alone }

// Signal signals the command; os.ErrProcessDone if it has ended.
func (c *Call) Signal(signal syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.process == nil {
		return os.ErrProcessDone
	}
	return c.process.Signal(signal)
}

var _ lifecycle.Process = (*Call)(nil)
