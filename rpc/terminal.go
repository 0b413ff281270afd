package rpc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

func (s *Server) registerTerminals() {
	onRequestThen(s.dispatcher, protocol.Spawn, s.spawn)
	onNotification(s.dispatcher, protocol.Input, s.input)
	onNotification(s.dispatcher, protocol.Resize, s.resize)
	onNotification(s.dispatcher, protocol.Ack, s.ack)
	onRequest(s.dispatcher, protocol.Signal, s.signal)
	onRequest(s.dispatcher, protocol.ForwardPort, s.forwardPort)
	onRequest(s.dispatcher, protocol.Wait, s.wait)
	onRequest(s.dispatcher, protocol.List, s.list)
	onRequest(s.dispatcher, protocol.Close, s.close)
	onRequest(s.dispatcher, protocol.ListGroups, s.listGroups)
	onRequest(s.dispatcher, protocol.CloseGroup, s.closeGroup)
	for _, method := range []string{
		protocol.Spawn.Method, protocol.Signal.Method, protocol.ForwardPort.Method, protocol.Wait.Method,
		protocol.Close.Method, protocol.CloseGroup.Method,
	} {
		s.dispatcher.waits[method] = true
	}
	s.dispatcher.cancels[protocol.Spawn.Method] = true
	s.dispatcher.cancels[protocol.Wait.Method] = true
}

func (s *Server) input(params protocol.InputParams) error {
	e, ok := s.sessions.find(params.SessionID)
	if !ok {
		return sessionNotFound(params.SessionID)
	}
	dropped := fmt.Errorf("%d B of input dropped: the session has ended or its program does not read", len(params.Data))
	err := e.do(len(params.Data), func(session *spawn.Session) error {
		taken := len(params.Data) == 0 || session.Input(params.Data)
		closed := !params.CloseStdin || session.CloseInput()
		switch {
		case !taken:
			return dropped
		case !closed:
			return errors.New("closeStdin: the session was not started with stdin")
		}
		return nil
	})
	if errors.Is(err, errBacklog) {
		return dropped
	}
	return err
}

func (s *Server) resize(params protocol.ResizeParams) error {
	e, ok := s.sessions.find(params.SessionID)
	if !ok {
		return sessionNotFound(params.SessionID)
	}
	if err := checkSize(params.Cols, params.Rows); err != nil {
		return err
	}
	return e.do(0, func(session *spawn.Session) error {
		return session.Resize(spawn.Size{Cols: params.Cols, Rows: params.Rows})
	})
}

func (s *Server) ack(params protocol.AckParams) error {
	e, ok := s.sessions.find(params.SessionID)
	if !ok {
		return nil // the last acks of a session may arrive after it was closed
	}
	_ = e.do(0, func(session *spawn.Session) error {
		session.Ack(params.Bytes)
		return nil
	})
	return nil
}

// started waits until a session has started. It returns an error if the start
// failed.
func (s *Server) started(ctx context.Context, id string) (*spawn.Session, error) {
	e, ok := s.sessions.find(id)
	if !ok {
		return nil, sessionNotFound(id)
	}
	select {
	case <-e.started:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if session := e.current(); session != nil {
		return session, nil
	}
	return nil, sessionNotFound(id)
}

func (s *Server) signal(ctx context.Context, params protocol.SignalParams) (protocol.Empty, error) {
	number := unix.SignalNum(params.Signal)
	if number == 0 {
		return protocol.Empty{}, invalidParams("signal", "expected a name such as \"SIGINT\", found %s",
			display.Quote(params.Signal))
	}
	session, err := s.started(ctx, params.SessionID)
	if err != nil {
		return protocol.Empty{}, err
	}
	return protocol.Empty{}, session.Signal(number)
}

func (s *Server) wait(ctx context.Context, params protocol.SessionParams) (protocol.ExitStatus, error) {
	session, err := s.started(ctx, params.SessionID)
	if err != nil {
		return protocol.ExitStatus{}, err
	}
	select {
	case <-session.LeaderEnded():
		return exitStatus(session.Exit()), nil
	case <-ctx.Done():
		return protocol.ExitStatus{}, ctx.Err()
	}
}

func exitStatus(exit spawn.Exit) protocol.ExitStatus {
	if exit.Signal != 0 {
		name := signalName(exit.Signal)
		return protocol.ExitStatus{Signal: &name}
	}
	return protocol.ExitStatus{ExitCode: &exit.Code}
}

// signalName also names the real-time signals, such as "SIG34".
func signalName(signal syscall.Signal) string {
	if name := unix.SignalName(signal); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(signal))
}

func (s *Server) list(context.Context, protocol.Empty) (protocol.ListResult, error) {
	result := protocol.ListResult{Sessions: []protocol.SessionInfo{}}
	entries, shells := s.sessions.all(), s.shells.all()
	like := slices.Clone(entries)
	for _, e := range shells {
		like = append(like, e.like())
	}
	current := s.cachedPolicies(like)
	for _, e := range shells {
		result.Sessions = append(result.Sessions, protocol.SessionInfo{
			SessionID: e.SessionID, Kind: e.Kind, PID: e.PID, Cwd: e.Cwd, ProjectDir: e.ProjectDir,
			PolicyID: e.PolicyID,
			Stale:    e.baseline != "" && current[keyOf(e.like())] != e.baseline, Running: s.shells.running(e),
			StartedAt: e.startedAt.Format(time.RFC3339Nano), Tracking: e.tracking, External: true,
		})
	}
	for _, e := range entries {
		session := e.current()
		result.Sessions = append(result.Sessions, protocol.SessionInfo{
			SessionID: e.id, Kind: e.kind, PID: session.PID(), Cwd: e.cwd, ProjectDir: e.projectDir,
			PolicyID: e.policyID, Group: e.group, Stale: current[keyOf(e)] != e.policyID, Running: e.running(),
			StartedAt: session.StartedAt().Format(time.RFC3339Nano),
			Tracking:  presentation.Tracking(session.Outcome()),
		})
	}
	slices.SortFunc(result.Sessions, func(a, b protocol.SessionInfo) int {
		return strings.Compare(a.StartedAt, b.StartedAt)
	})
	return result, nil
}

const (
	// terminalGrace is how long a shell may take to save its history when its
	// terminal is closed.
	terminalGrace = 300 * time.Millisecond
	maxGrace      = time.Minute
)

// defaultGrace is zero for a tool, because a command that an agent cancels has
// nothing to save.
func (e *entry) defaultGrace() time.Duration {
	if e.kind == protocol.Tool {
		return 0
	}
	return terminalGrace
}

func (s *Server) close(ctx context.Context, params protocol.CloseParams) (protocol.CloseResult, error) {
	if ms := params.GraceMs; ms != nil && (*ms < 0 || *ms > int(maxGrace.Milliseconds())) {
		return protocol.CloseResult{}, invalidParams("graceMs", "expected 0 to %d, found %d",
			maxGrace.Milliseconds(), *ms)
	}
	e, err := s.sessions.take(params.SessionID)
	if err != nil {
		return s.closeShell(params.SessionID)
	}
	defer s.sessions.forget(e)
	grace := e.defaultGrace()
	if params.GraceMs != nil {
		grace = time.Duration(*params.GraceMs) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, grace+shutdownTimeout)
	defer cancel()
	end, err := e.close(ctx, grace)
	if end == nil {
		return protocol.CloseResult{}, sessionNotFound(params.SessionID)
	}
	if err != nil {
		s.log.Error("processes survived the end of their session", "session", params.SessionID, "error", err)
	}
	result := protocol.CloseResult{
		Killed: end.Killed, Remaining: end.Remaining,
		ElapsedMs: int(end.elapsed.Milliseconds()), Review: presentation.Findings(end.findings),
	}
	if end.exit != nil {
		status := exitStatus(*end.exit)
		result.ExitCode, result.Signal = status.ExitCode, status.Signal
	}
	return result, nil
}
