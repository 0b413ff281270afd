//go:build unix

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
)

const (
	// mostAtOnce is how many commands of run work at the same time. Further
	// calls wait for their turn.
	mostAtOnce = 8
	// mostWaiting bounds the calls that wait.
	mostWaiting = 1000
	// mostStarted is how many commands of start may run.
	mostStarted = 16
	// mostKept is how many commands of start that have ended are remembered.
	mostKept = 16

	usualTimeout, mostTimeout = 2 * time.Minute, time.Hour
)

// command is a command that runs, with its output.
type command struct {
	id       string // of its session
	takes    bool   // the tool input writes to its standard input
	output   output
	stderr   output // empty unless it is apart
	report   report
	told     []string // warnings of the start
	warnings []string // all of them; set before ended is closed

	typing sync.Mutex // keeps the order of input, and guards the field below
	last   bool       // its standard input was closed

	killing sync.Once
	killed  chan struct{} // closed to end it
	exit    chan struct{} // closed once status is set
	status  protocol.ExitedParams
	ended   chan struct{} // closed once the session is closed, and everything is known
}

// exited notes how the command has ended. The sidecar says it once.
func (c *command) exited(status protocol.ExitedParams) {
	c.status = status
	close(c.exit)
}

// Kill ends every process of a command that runs, and returns once ended is
// closed.
func (c *command) Kill() {
	c.killing.Do(func() { close(c.killed) })
	<-c.ended
}

// order is a line of shell to start.
type order struct {
	line, cwd string
	timeout   time.Duration // 0 for none
	stdin     bool          // a pipe
	stderr    bool          // apart
	output    int           // bytes of each stream that are kept
}

// begin starts a line of shell.
func (s *Server) begin(ctx context.Context, o order) (*command, error) {
	if o.line == "" {
		return nil, errors.New("command: expected a line for the shell, found an empty one")
	}
	if !filepath.IsAbs(o.cwd) {
		o.cwd = filepath.Join(s.sidecar.project, o.cwd)
	}
	o.cwd = filepath.Clean(o.cwd)
	return s.sidecar.start(ctx, o)
}

// timeoutOf is the time limit that a call asks for.
func timeoutOf(seconds int, usual time.Duration) (time.Duration, error) {
	switch most := int(mostTimeout / time.Second); {
	case seconds < 0 || seconds > most:
		return 0, fmt.Errorf("timeout_seconds: expected 1 to %d, found %d", most, seconds)
	case seconds == 0:
		return usual, nil
	}
	return time.Duration(seconds) * time.Second, nil
}

// run runs a line of shell to its end.
func (s *Server) run(ctx context.Context, in RunInput) (RunOutput, error) {
	timeout, err := timeoutOf(in.TimeoutSeconds, usualTimeout)
	if err != nil {
		return RunOutput{}, err
	}
	if in.MaxOutputBytes < 0 || in.MaxOutputBytes > mostOutput {
		return RunOutput{}, fmt.Errorf("max_output_bytes: expected 1 to %d, found %d", mostOutput, in.MaxOutputBytes)
	}
	leave, err := s.turn(ctx)
	if err != nil {
		return RunOutput{}, err
	}
	defer leave()
	c, err := s.begin(ctx, order{
		line: in.Command, cwd: in.Cwd, timeout: timeout, stdin: in.Stdin != "", stderr: in.SeparateStderr,
		output: cmp.Or(in.MaxOutputBytes, usualOutput),
	})
	if err != nil {
		return RunOutput{}, err
	}
	if in.Stdin != "" {
		_ = s.sidecar.write(c, in.Stdin, true) // if the sidecar is gone, the command has ended
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.Kill()
		return RunOutput{}, ctx.Err()
	}
	out := RunOutput{Result: c.result()}
	out.take(c)
	return out, nil
}

var errFull = errors.New("too many commands wait already: call again later")

// turn waits until a command may run. The caller must call leave.
func (s *Server) turn(ctx context.Context) (leave func(), err error) {
	if s.waiting.Add(1) > mostWaiting {
		s.waiting.Add(-1)
		return nil, errFull
	}
	defer s.waiting.Add(-1)
	select {
	case s.turns <- struct{}{}:
		return func() { <-s.turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// result is how a command ended, and what it was refused.
func (c *command) result() Result {
	result := Result{Ended: true, Warnings: c.warnings}
	status := protocol.ExitedParams{Signal: new("SIGKILL")} // if it cannot be killed, or the sidecar is gone
	select {
	case <-c.exit:
		status = c.status
	default:
	}
	switch {
	case status.Signal != nil:
		result.Signal, result.ExitCode = *status.Signal, new(128+numberOf(*status.Signal))
	case status.ExitCode != nil:
		result.ExitCode = status.ExitCode
	}
	result.Background, result.SandboxEnded = status.Background, status.GroupEnded
	result.Killed, result.TimedOut = status.Killed, status.TimedOut
	result.Refused, result.RefusedMore, result.Changed = c.report.read()
	result.Limits = c.report.reachedSoFar()
	return result
}

// numberOf is the number of a signal. The sidecar calls one without a name
// "SIG34".
func numberOf(signal string) int {
	if number := unix.SignalNum(signal); number != 0 {
		return int(number)
	}
	number, _ := strconv.Atoi(strings.TrimPrefix(signal, "SIG"))
	return number
}

// state is result for a command that may still run.
func (c *command) state() Result {
	select {
	case <-c.ended:
		return c.result()
	default:
	}
	result := Result{Warnings: c.told}
	result.Refused, result.RefusedMore, _ = c.report.read()
	result.Limits = c.report.reachedSoFar()
	return result
}

// started are the commands of start.
type started struct {
	mu       sync.Mutex
	commands map[string]*command
	order    []string // of all ids, the oldest first
	closed   bool
}

// start starts a line of shell that goes on.
func (s *Server) start(ctx context.Context, in StartInput) (StartOutput, error) {
	s.started.mu.Lock()
	defer s.started.mu.Unlock()
	if s.started.closed {
		return StartOutput{}, context.Canceled
	}
	if err := s.started.makeRoom(); err != nil {
		return StartOutput{}, err
	}
	timeout, err := timeoutOf(in.TimeoutSeconds, 0)
	if err != nil {
		return StartOutput{}, err
	}
	c, err := s.begin(ctx, order{
		line: in.Command, cwd: in.Cwd, timeout: timeout, stdin: in.Stdin, stderr: in.SeparateStderr,
		output: usualOutput,
	})
	if err != nil {
		return StartOutput{}, err
	}
	s.count++
	id := fmt.Sprintf("command-%d", s.count)
	s.started.commands[id] = c
	s.started.order = append(s.started.order, id)
	return StartOutput{ID: id, Warnings: c.told}, nil
}

// makeRoom forgets the oldest commands that have ended, or returns an error if
// too many run. mu is held.
func (l *started) makeRoom() error {
	var running, ended []string
	for _, id := range l.order {
		select {
		case <-l.commands[id].ended:
			ended = append(ended, id)
		default:
			running = append(running, id)
		}
	}
	if len(running) >= mostStarted {
		return fmt.Errorf("%d commands run already: stop one first: %s", len(running), strings.Join(running, ", "))
	}
	for _, id := range ended[:max(0, len(ended)-mostKept)] {
		l.forget(id)
	}
	return nil
}

func (l *started) forget(id string) {
	delete(l.commands, id)
	for i, other := range l.order {
		if other == id {
			l.order = append(l.order[:i], l.order[i+1:]...)
			return
		}
	}
}

func (l *started) find(id string) (*command, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.commands[id]
	if !known {
		return nil, fmt.Errorf("id: no command of start is called %q", id)
	}
	return c, nil
}

// read returns what a started command has printed since the last call.
func (s *Server) read(ctx context.Context, in OutputInput) (RunOutput, error) {
	if in.WaitSeconds < 0 || in.WaitSeconds > 60 {
		return RunOutput{}, fmt.Errorf("wait_seconds: expected 0 to 60, found %d", in.WaitSeconds)
	}
	c, err := s.started.find(in.ID)
	if err != nil {
		return RunOutput{}, err
	}
	timer := time.NewTimer(time.Duration(in.WaitSeconds) * time.Second)
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
	case <-ctx.Done():
		return RunOutput{}, ctx.Err()
	}
	out := RunOutput{Result: c.state()}
	out.take(c)
	return out, nil
}

// input writes to the standard input of a started command.
func (s *Server) input(_ context.Context, in InputInput) (InputOutput, error) {
	c, err := s.started.find(in.ID)
	switch {
	case err != nil:
		return InputOutput{}, err
	case !c.takes:
		return InputOutput{}, fmt.Errorf("id: %s was started without stdin: start it with stdin: true", in.ID)
	}
	select {
	case <-c.exit:
		return InputOutput{}, fmt.Errorf("id: %s has ended: see output", in.ID)
	default:
	}
	c.typing.Lock()
	defer c.typing.Unlock()
	if c.last {
		return InputOutput{}, fmt.Errorf("id: the standard input of %s was closed by close_stdin: start another", in.ID)
	}
	if err := s.sidecar.write(c, in.Text, in.CloseStdin); err != nil {
		return InputOutput{}, err
	}
	c.last = in.CloseStdin
	return InputOutput{Bytes: len(in.Text)}, nil
}

// stop ends a started command with its processes; see command.Kill.
func (s *Server) stop(_ context.Context, in StopInput) (RunOutput, error) {
	c, err := s.started.find(in.ID)
	if err != nil {
		return RunOutput{}, err
	}
	c.Kill()
	<-c.ended
	out := RunOutput{Result: c.result()}
	out.take(c)
	s.started.mu.Lock()
	s.started.forget(in.ID)
	s.started.mu.Unlock()
	return out, nil
}

// close ends all commands of start. No more can be started.
func (l *started) close() {
	l.mu.Lock()
	l.closed = true
	commands := slices.Collect(maps.Values(l.commands))
	l.mu.Unlock()
	var ending sync.WaitGroup
	for _, c := range commands {
		ending.Go(c.Kill)
	}
	ending.Wait()
}
