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
)

// Sink takes what a session produces. Its methods are called one at a time,
// from the session's goroutines; one that blocks holds up that session alone.
type Sink interface {
	// Output takes bytes of the terminal. They are valid only during the call.
	Output(data []byte)
	// Alarm tells what happens to protected paths. It may be called while
	// Output is.
	Alarm(alarm Alarm)
	// Denied tells what the session was refused. It may be called while the
	// others are.
	Denied(denial Denial)
	// Exited tells how the leader ended. It is the last call, after all output.
	Exited(exit Exit)
}

// Exit says how a leader ended.
type Exit struct {
	// Code is the exit status where Signal is 0.
	Code int
	// Signal is what ended it, or 0.
	Signal syscall.Signal
}

// killTimeout bounds the wait for killed processes to be gone. Only an
// uninterruptible system call can take so long.
const killTimeout = 10 * time.Second

// Session is one running leader on its terminal. Its methods may be called from
// several goroutines.
type Session struct {
	id      string
	master  *os.File
	running *running

	gate   gate   // how much output may be sent unacknowledged
	inputs inputs // bytes on their way into the terminal

	leaderEnded chan struct{} // closed once exit is set
	exit        Exit
	done        chan struct{} // closed once everything of the session is gone and reported
	killErr     error         // set before done is closed
	killed      atomic.Int64
	ending      atomic.Bool // nothing can add output any more; see readOutput
	begin       sync.Once

	groupMu  sync.Mutex // held while the group is killed or given back: a cgroup must not vanish under whoever kills it
	survived error      // what the first kill said that somebody has survived; guarded by groupMu
}

func newSession(request Request, running *running) *Session {
	s := &Session{
		id: request.ID, master: running.master, running: running,
		leaderEnded: make(chan struct{}), done: make(chan struct{}),
	}
	s.gate.init(request.FlowControl)
	s.inputs.init(s.typeNow)
	return s
}

// ID is the request's.
func (s *Session) ID() string { return s.id }

// PID is the leader's process id.
func (s *Session) PID() int { return s.running.process.PID() }

// StartedAt is when the leader was executed.
func (s *Session) StartedAt() time.Time { return s.running.startedAt }

// Outcome says what the session got.
func (s *Session) Outcome() Outcome { return s.running.outcome }

// Begin lets the session's output flow into sink, after the given first bytes.
// It must be called once, also for a session that is to be closed at once.
func (s *Session) Begin(sink Sink, first []byte) {
	s.begin.Do(func() {
		outputDone := make(chan struct{})
		go func() {
			defer close(outputDone)
			if len(first) > 0 {
				sink.Output(first)
			}
			s.readOutput(sink)
		}()
		alarmsDone := make(chan struct{})
		go func() {
			defer close(alarmsDone)
			for alarm, ok := s.running.protection.next(); ok; alarm, ok = s.running.protection.next() {
				sink.Alarm(alarm)
			}
		}()
		denialsDone := make(chan struct{})
		go func() {
			defer close(denialsDone)
			for denial, ok := s.running.denials.next(); ok; denial, ok = s.running.denials.next() {
				sink.Denied(denial)
			}
		}()
		go s.typeInputs()
		go s.awaitEnd(sink, outputDone, alarmsDone, denialsDone)
	})
}

// awaitEnd owns the end of the session: the leader is reaped, what it left
// behind is killed, the rest of the output is delivered, and only then the end
// is told.
func (s *Session) awaitEnd(sink Sink, outputDone, alarmsDone, denialsDone <-chan struct{}) {
	defer close(s.done)
	var reaping sync.WaitGroup
	reaping.Go(func() { reapTraced(s.leaderEnded, s.PID()) })
	s.exit = waitFor(s.running.process)
	close(s.leaderEnded)
	reaping.Wait()
	s.killErr = s.killGroup()
	for _, f := range s.running.protection.end() {
		s.running.log.Info("worth a look before it runs outside", "session", s.id, "path", f.Path, "change", f.How, "why",
			f.Why)
	}
	s.running.endSupervision()
	s.inputs.close()
	// The reader may be waiting in a read that nothing will end: a process that
	// left the group can hold the terminal open.
	s.ending.Store(true)
	_ = s.master.SetReadDeadline(time.Now().Add(drainPause))
	<-outputDone
	<-alarmsDone
	<-denialsDone
	s.master.Close()
	s.releaseGroup()
	sink.Exited(s.exit)
}

func waitFor(process lifecycle.Process) Exit {
	status, err := process.Wait(false)
	if err != nil {
		// Only a fault of ours can lead here: nobody else may wait for our
		// child.
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

func (s *Session) killGroup() error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	s.groupMu.Lock()
	defer s.groupMu.Unlock()
	if s.survived != nil {
		return s.survived // nobody is to wait for it twice
	}
	killed, err := s.running.kill(ctx)
	s.killed.Add(int64(killed))
	if err != nil {
		s.survived = err
		s.running.release(err)
	}
	return err
}

func (s *Session) releaseGroup() {
	s.groupMu.Lock()
	defer s.groupMu.Unlock()
	if s.survived == nil {
		s.running.release(nil)
	}
}

// LeaderEnded is closed when the leader has ended; Exit may be called then.
func (s *Session) LeaderEnded() <-chan struct{} { return s.leaderEnded }

// Exit says how the leader ended. It must not be called before LeaderEnded is
// closed.
func (s *Session) Exit() Exit { return s.exit }

// Findings are the files that changed while the session ran and that programs
// outside act upon; none before its processes are gone.
func (s *Session) Findings() []Finding { return s.running.protection.reviewed() }

// Input types bytes into the terminal, behind those of earlier calls. It never
// blocks. It reports false where the bytes were dropped: the session has ended,
// or more than maxInput is waiting for a program that does not read.
func (s *Session) Input(data []byte) bool { return s.inputs.put(data) }

// typeNow types what the terminal takes at once.
func (s *Session) typeNow(data []byte) int {
	typed := 0
	err := control(s.master, func(fd int) (err error) {
		typed, err = unix.Write(fd, data)
		return err
	})
	if err != nil {
		return 0 // typeInputs waits, or finds that the terminal is gone
	}
	return typed
}

func (s *Session) typeInputs() {
	for {
		data, ok := s.inputs.take()
		if !ok {
			return
		}
		if _, err := s.master.Write(data); err != nil {
			s.inputs.close() // the terminal is gone
			return
		}
	}
}

// Ack tells that the sink's reader has consumed n bytes of output. It counts
// only under flow control.
func (s *Session) Ack(n int) { s.gate.ack(n) }

// Resize changes the terminal's size.
func (s *Session) Resize(size Size) error {
	if err := setSize(s.master, size); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("resize terminal: %w", err)
	}
	return nil
}

// ErrEnded means that the leader has ended, so that there is no foreground
// process group to speak of.
var ErrEnded = errors.New("session has ended")

// Signal sends a signal to the terminal's foreground process group.
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
		return ErrEnded // between our question and the signal
	case err != nil:
		return fmt.Errorf("signal process group %d: %w", group, err)
	}
	return nil
}

// foreground asks the terminal (TIOCGPGRP on the master, ioctl_tty(2)). A group
// that has died meanwhile may have left its number to a stranger; only one of
// this session counts, and the leader's own stands in otherwise.
func (s *Session) foreground() (int, error) {
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

// Closed says what closing a session came to.
type Closed struct {
	// Killed is how many processes had to be killed.
	Killed int
	// Remaining is how many of them are known to have survived that; 1 where
	// somebody has and nobody knows how many.
	Remaining int
}

// Close ends the session: the leader and the foreground process group get
// SIGHUP as when a terminal window closes, the leader may take grace to end,
// then everything is killed. It returns once no process is left and the end was
// told to the sink. When ctx ends first, or processes survive, the error wraps
// lifecycle.ErrSurvivors and names them where they are known; they go on being
// killed.
func (s *Session) Close(ctx context.Context, grace time.Duration) (Closed, error) {
	s.gate.open() // nobody may be left who acknowledges
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
	err := s.killGroup()
	if err != nil {
		// The leader may be the survivor; then the end is told whenever it
		// comes.
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
	closed := Closed{Killed: int(s.killed.Load())}
	if survivors, known := errors.AsType[*lifecycle.Survivors](err); known {
		closed.Remaining = len(survivors.PIDs)
	}
	if err != nil {
		closed.Remaining = max(1, closed.Remaining)
	}
	return closed, err
}

// survivorPause is how long Close waits for the leader's end to be told where
// others have survived.
const survivorPause = 300 * time.Millisecond

// hangUp sends SIGHUP, and SIGCONT so that a stopped process takes it.
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
