package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/printed"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
)

// Sink receives what a session produces. Output, Stderr, Alarm, Denied and Reached
// are called from five goroutines, each one call at a time. A call that blocks holds
// up only that session.
type Sink interface {
	// Output receives bytes of the terminal or the pipe. They are valid only
	// during the call.
	Output(data []byte)
	// Stderr is Output for the standard error of a session that has it apart; see
	// Pipes.
	Stderr(data []byte)
	Observer
	// Exited reports how the leader ended. Nothing but Reviewed comes after it.
	Exited(exit Exit)
	// Reviewed reports the files that changed while the session ran and that
	// programs outside the sandbox act on. It is the last call.
	Reviewed(findings []Finding)
}

// Observer receives what happens to a session.
type Observer interface {
	// Alarm reports what happened to a protected path.
	Alarm(alarm Alarm)
	// Denied reports what the session was refused.
	Denied(denial Denial)
	// Reached reports that the session has reached a limit, once for each.
	Reached(limit Reached)
}

// Exit says how a leader ended.
type Exit struct {
	// Code is the exit status; 0 if a signal ended the leader.
	Code int
	// Signal is the signal that ended it, or 0.
	Signal syscall.Signal
}

// killTimeout bounds the wait until killed processes are gone. Only a process
// in an uninterruptible system call takes so long.
const killTimeout = 10 * time.Second

// Session is one leader on its own terminal or pipe. Its methods may be called
// from several goroutines.
type Session struct {
	id      string
	master  *os.File // of the terminal, or the end of the pipe that is read
	pipe    bool
	stdin   *os.File // the end of a pipe that is written; nil if it has none
	stderr  *os.File // the end of a pipe of its own that is read; nil if it has none
	running *running
	// onLeaderEnd is called once the leader has ended.
	onLeaderEnd func()

	dir    string // where the leader was started
	watch  *outputWatch
	pause  time.Duration // drainPause
	gate   gate          // how much output may be sent unacknowledged
	most   int64         // Request.OutputCap
	inputs inputs        // bytes that wait to be typed

	dropped  atomic.Int64 // bytes of output beyond the cap
	limit    time.Duration
	timedOut atomic.Bool

	leaderEnded chan struct{} // closed once exit is set
	exit        Exit
	done        chan struct{} // closed once everything of the session is gone and reported
	killErr     error         // set before done is closed
	ending      atomic.Bool   // every process is dead, so that output ends; see read
	// drainUntil is when the output ends whatever comes: processes in the
	// background may print for ever. It is nil if there are none.
	drainUntil atomic.Pointer[time.Time]
	begin      sync.Once
}

func newSession(request Request, running *running, onLeaderEnd func()) *Session {
	s := &Session{
		id: request.ID, dir: request.Dir, master: running.master, pipe: request.Pipe, running: running,
		onLeaderEnd: onLeaderEnd, pause: drainPause, most: request.OutputCap, limit: request.TimeLimit,
		leaderEnded: make(chan struct{}), done: make(chan struct{}),
	}
	if s.pipe {
		s.stdin, s.stderr = request.Pipes.take()
	}
	s.watch = newOutputWatch(running.policy, running, running.env, s.foregroundDir)
	running.env = nil
	s.gate.init(request.FlowControl)
	s.inputs.init(s.typeNow)
	if s.pipe && s.stdin == nil {
		s.inputs.close() // there is nothing to type into
	}
	return s
}

// ID is the ID of the request.
func (s *Session) ID() string { return s.id }

// PID is the leader's process id.
func (s *Session) PID() int { return s.running.process.PID() }

// StartedAt is when the leader was executed.
func (s *Session) StartedAt() time.Time { return s.running.startedAt }

// Outcome says what the session got, as opposed to what its request asked for.
func (s *Session) Outcome() Outcome { return s.running.outcome }

// Begin lets output flow into sink, after the given first bytes. The owner must
// call it for every session, even before an immediate Close. Later calls have
// no effect.
func (s *Session) Begin(sink Sink, first []byte) {
	s.begin.Do(func() {
		var reading sync.WaitGroup
		reading.Go(func() {
			var apart sync.WaitGroup
			if s.stderr != nil {
				apart.Go(func() { s.outlet(s.stderr).move(sink.Stderr, s.watch.scanStderr) })
			}
			if len(first) > 0 {
				sink.Output(first)
			}
			s.outlet(s.master).move(sink.Output, s.watch.scan)
			apart.Wait()
			s.watch.end()
		})
		s.running.deliver(sink, false)
		go s.typeInputs()
		if s.limit > 0 {
			go s.expire()
		}
		go s.awaitEnd(sink, &reading)
	})
}

// awaitEnd waits for the session's end, and reports it.
func (s *Session) awaitEnd(sink Sink, reading *sync.WaitGroup) {
	defer close(s.done)
	_, s.killErr = s.running.end(ending{
		await: func() Exit { return waitFor(s.running.process) },
		leaderEnded: func(exit Exit) {
			s.exit = exit
			close(s.leaderEnded)
			s.onLeaderEnd()
		},
		drain: func() { s.drain(reading) },
		over:  sink.Exited,
	})
	findings := s.Findings()
	for _, f := range findings {
		s.running.log.Info("check this file before a program outside the sandbox uses it", "session", s.id,
			"path", f.Path, "others", f.Others, "change", f.How, "why", f.Why)
	}
	sink.Reviewed(findings)
}

// drain waits for the rest of the output, and closes the terminal.
func (s *Session) drain(reading *sync.WaitGroup) {
	s.inputs.close()
	outputs := []*os.File{s.master}
	if s.stdin != nil {
		s.stdin.Close() // which ends a write, if a process in the background does not read
	}
	if s.stderr != nil {
		outputs = append(outputs, s.stderr)
	}
	var lingering []*os.File
	c, joined := s.running.group.(*call)
	if joined {
		lingering = slices.DeleteFunc(slices.Clone(outputs), func(output *os.File) bool { return !isOpen(output) })
	}
	if len(lingering) > 0 {
		until := time.Now().Add(s.pause)
		s.drainUntil.Store(&until)
	}
	// Nothing else may end the reader's current read: a process that left the
	// group can hold the terminal open.
	s.ending.Store(true)
	for _, output := range outputs {
		_ = output.SetReadDeadline(time.Now().Add(s.pause))
	}
	reading.Wait()
	for _, output := range outputs {
		if slices.Contains(lingering, output) {
			c.shared.keepReading(output)
		} else {
			output.Close()
		}
	}
}

// Background is how many processes the leader has left in the session's group,
// as far as they are known; see Group. It is 0 before the leader's end.
func (s *Session) Background() int {
	if c, joined := s.running.group.(*call); joined {
		return c.left()
	}
	return 0
}

// GroupEnded reports whether the session's group has ended, or is about to, with
// everything in it.
func (s *Session) GroupEnded() bool {
	c, joined := s.running.group.(*call)
	return joined && c.shared.Ending()
}

// LeaderEnded is closed when the leader has ended; Exit may be called then.
func (s *Session) LeaderEnded() <-chan struct{} { return s.leaderEnded }

// Exit says how the leader ended. It must not be called before LeaderEnded is
// closed.
func (s *Session) Exit() Exit { return s.exit }

// Findings are the files that changed while the session ran and that programs
// outside the sandbox act on. There are none before its processes are gone.
func (s *Session) Findings() []Finding { return s.running.protection.reviewed() }

// Input types bytes into the terminal, or writes them to standard input if that is
// a pipe, after those of earlier calls. It never blocks. It reports false if the
// bytes were dropped, because the session has ended or more than 16 MiB wait for a
// program that does not read. A pipe ends then: what came later would follow a gap.
func (s *Session) Input(data []byte) bool {
	taken := s.inputs.put(data)
	if !taken {
		s.CloseInput()
	}
	return taken
}

// CloseInput ends the pipe that is standard input, after the bytes of earlier calls
// of Input. It never blocks. It reports false if the session has no such pipe.
func (s *Session) CloseInput() bool {
	if s.stdin == nil {
		return false
	}
	s.inputs.finish()
	return true
}

// typed is where input goes.
func (s *Session) typed() *os.File {
	if s.stdin != nil {
		return s.stdin
	}
	return s.master
}

// typeNow types the bytes that the terminal takes without waiting, and returns
// how many.
func (s *Session) typeNow(data []byte) int {
	typed := 0
	err := control(s.typed(), func(fd int) (err error) {
		typed, err = unix.Write(fd, data)
		return err
	})
	if err != nil {
		return 0 // typeInputs waits, or finds that the terminal is closed
	}
	return typed
}

func (s *Session) typeInputs() {
	if s.stdin != nil {
		defer s.stdin.Close() // which ends the input, unless that was done
	}
	for {
		data, ok := s.inputs.take()
		if !ok {
			return
		}
		if _, err := s.typed().Write(data); err != nil {
			s.inputs.close() // no process can read it any more
			return
		}
	}
}

// Ack reports that n bytes of output were consumed. It has an effect only under
// flow control.
func (s *Session) Ack(n int) { s.gate.ack(n) }

// Resize changes the terminal's size. It has no effect after the session's end,
// nor on a pipe.
func (s *Session) Resize(size Size) error {
	if s.pipe {
		return nil
	}
	if err := setSize(s.master, size); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// termGrace is how long a leader whose time is over may take to end after SIGTERM.
const termGrace = 2 * time.Second

// expire ends the session once its time is over, with all of its processes: by
// SIGTERM, and what does not end by that is killed.
func (s *Session) expire() {
	if !s.runsFor(s.limit) {
		return
	}
	s.timedOut.Store(true)
	if c, joined := s.running.group.(*call); joined {
		c.close()
	}
	_ = s.Signal(unix.SIGTERM)
	_ = s.Signal(unix.SIGCONT) // a stopped process must receive it
	if s.runsFor(termGrace) {
		_ = s.running.kill() // awaitEnd has the error, too
	}
}

// runsFor reports whether the leader still runs after a while.
func (s *Session) runsFor(while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-s.leaderEnded:
		return false
	case <-timer.C:
		return true
	}
}

// TimedOut reports whether the session's time was over while its leader ran.
func (s *Session) TimedOut() bool { return s.timedOut.Load() }

// Dropped is how many bytes of output were dropped so far, as there were more than
// the cap.
func (s *Session) Dropped() int64 { return s.dropped.Load() }

// Killed is how many processes of the session had to be killed so far.
func (s *Session) Killed() int { return s.running.killedSoFar() }

// ErrEnded means that the leader has ended, so that the terminal has no
// foreground process group.
var ErrEnded = errors.New("session has ended")

// Signal sends a signal to the terminal's foreground process group. Without a
// terminal that is the leader's group.
func (s *Session) Signal(signal syscall.Signal) error {
	select {
	case <-s.leaderEnded:
		return ErrEnded
	default:
	}
	group, err := s.foreground()
	if err != nil {
		return fmt.Errorf("find foreground process group: %w", err)
	}
	switch err := unix.Kill(-group, signal); {
	case errors.Is(err, unix.ESRCH):
		return ErrEnded // since foreground asked
	case err != nil:
		return fmt.Errorf("signal process group %d: %w", group, err)
	}
	return nil
}

// foreground asks the terminal for its foreground process group (TIOCGPGRP on
// the master, ioctl_tty(2)). The number may belong to a process outside the
// session by now, if the group has died; then it returns the leader's group.
func (s *Session) foreground() (int, error) {
	if s.pipe {
		return s.PID(), nil
	}
	group := 0
	err := control(s.master, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	if err != nil {
		return 0, err
	}
	if session, err := unix.Getsid(group); group > 1 && err == nil && session == s.PID() {
		return group, nil
	}
	return s.PID(), nil
}

// foregroundDir is the working directory of the terminal's foreground process,
// or of the leader. If both have ended, it is where the session has started.
func (s *Session) foregroundDir() string {
	if group, err := s.foreground(); err == nil {
		if dir := printed.DirOf(group); dir != "" {
			return dir
		}
	}
	return cmp.Or(printed.DirOf(s.PID()), s.dir)
}

// Closed says how many processes closing a session killed.
type Closed struct {
	// Killed is how many processes had to be killed.
	Killed int
	// Remaining is how many of them survived; 1 if some did and their number is
	// unknown.
	Remaining int
}

// Close ends the session. If grace is positive, the leader and the foreground
// process group get SIGHUP, as when a terminal window closes, and the leader
// may take that long to end. Then every process is killed. Close returns once
// none is left and the sink has the end. If ctx ends first or processes
// survive, the error wraps lifecycle.ErrSurvivors, which names them if they are
// known, and they are killed in the background from then on.
func (s *Session) Close(ctx context.Context, grace time.Duration) (Closed, error) {
	s.gate.open() // the editor may no longer acknowledge
	if c, joined := s.running.group.(*call); joined {
		c.close()
	}
	if grace > 0 {
		s.hangUp()
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-s.leaderEnded:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	err := s.running.kill()
	if err != nil {
		// The leader may be the survivor. Its end is reported whenever it comes.
		bounded, cancel := context.WithTimeout(ctx, survivorPause)
		defer cancel()
		ctx = bounded
	}
	select {
	case <-s.done:
		err = errors.Join(err, s.killErr)
	case <-ctx.Done():
		err = errors.Join(err, lifecycle.ErrSurvivors)
	}
	return closed(s.running, err)
}

// closed counts what an end has killed, and what has survived it.
func closed(r *running, err error) (Closed, error) {
	closed := Closed{Killed: r.killedSoFar()}
	if survivors, known := errors.AsType[*lifecycle.Survivors](err); known {
		closed.Remaining = len(survivors.PIDs)
	}
	if err != nil {
		closed.Remaining = max(1, closed.Remaining)
	}
	return closed, err
}

// survivorPause is how long Close waits for the report of the leader's end if
// other processes have survived.
const survivorPause = 300 * time.Millisecond

// hangUp sends SIGHUP, and SIGCONT so that a stopped process receives it.
func (s *Session) hangUp() {
	select {
	case <-s.leaderEnded:
		return
	default:
	}
	for _, signal := range []syscall.Signal{unix.SIGHUP, unix.SIGCONT} {
		if group, err := s.foreground(); err == nil && group != s.PID() {
			_ = unix.Kill(-group, signal)
		}
		_ = s.running.process.Signal(signal)
	}
}
