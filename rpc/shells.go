package rpc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/window"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

const (
	// maxEndedShells bounds the ended shells that the editor has not closed.
	maxEndedShells = 100
	// maxQuestions bounds the questions of one shell that wait for an answer.
	maxQuestions = 32
)

// shells is the table of the sessions that report over the window's socket.
type shells struct {
	mu        sync.Mutex // guards the fields below
	entries   map[string]*shellEntry
	ended     []string             // ids in the order of their ends
	baselines map[policyKey]string // policies of new sessions, since the last change of settings
}

// shellEntry is a session that a shell has started.
type shellEntry struct {
	protocol.StartedParams
	tracking  protocol.Tracking
	startedAt time.Time
	// baseline is the policy that a session got when this one had started. The
	// shell's own policy may differ from that: its environment may.
	baseline string
	end      *window.Ended // guarded by the table's mutex; nil until the session has ended
}

// like is an entry with the same policy.
func (e *shellEntry) like() *entry {
	return &entry{projectDir: e.ProjectDir, kind: e.Kind, policyID: e.baseline}
}

func newShells() *shells {
	return &shells{entries: map[string]*shellEntry{}, baselines: map[policyKey]string{}}
}

// openWindow opens the socket, and returns its path; "" if that fails.
func (s *Server) openWindow(asks bool) string {
	listener, err := s.options.Window()
	if err != nil {
		s.log.Warn("shells cannot report to this editor", "error", err)
		return ""
	}
	listener.Asks = asks
	s.mu.Lock()
	s.window = listener
	s.mu.Unlock()
	s.background.Go(func() {
		listener.Serve(s.serveShell, func(err error) { s.log.Warn("a shell's report was refused", "error", err) })
	})
	return listener.Path
}

func (s *Server) closeWindow() {
	s.mu.Lock()
	listener := s.window
	s.mu.Unlock()
	if listener != nil {
		listener.Close()
	}
}

// serveShell passes on what a shell reports, until its connection ends.
func (s *Server) serveShell(shell *window.Shell) {
	e, err := newShellEntry(shell)
	if err != nil {
		s.log.Warn("a shell's report was refused", "error", err)
		return
	}
	e.baseline = s.baseline(keyOf(e.like()))
	s.shells.add(e)
	s.log.Info("a shell has started a session", "session", e.SessionID, "pid", e.PID, "project", e.ProjectDir)
	notify(s, protocol.Started, e.StartedParams)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	questions := shellQuestions{cancel: map[int]context.CancelFunc{}}
	end := &window.Ended{}
	for {
		message, err := shell.Receive()
		if err == nil {
			err = s.handleShell(ctx, shell, e, &questions, message)
		}
		if err != nil {
			s.log.Warn("a shell's report ends early", "session", e.SessionID, "error", err)
			break
		}
		if message.Ended != nil {
			end = message.Ended
			break
		}
	}
	cancel()
	questions.asked.Wait()
	if s.ctx.Err() != nil || s.ending() {
		return // nobody listens any more
	}
	s.shells.markEnded(e, end, func() {
		notify(s, protocol.Exited, protocol.ExitedParams{
			SessionID: e.SessionID, ExitCode: end.Status.ExitCode, Signal: end.Status.Signal,
			Hints: display.Lines(end.Hints),
		})
		if review := shownReview(end); len(review) > 0 {
			notify(s, protocol.Reviewed, protocol.ReviewParams{SessionID: e.SessionID, Review: review})
		}
	})
}

// shownReview are the files to check after a shell's session, safe to show.
func shownReview(end *window.Ended) []protocol.Finding {
	var review []protocol.Finding
	for _, finding := range end.Review {
		finding.Message, finding.Why = display.Line(finding.Message), display.Line(finding.Why)
		review = append(review, finding)
	}
	return review
}

func (s *Server) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == phaseShutdown
}

// newShellEntry checks what a shell says of its session.
func newShellEntry(shell *window.Shell) (*shellEntry, error) {
	said := shell.Started
	if said.Kind != protocol.Terminal && said.Kind != protocol.Tool {
		return nil, errors.New("expected a kind of session")
	}
	for _, dir := range []string{said.Cwd, said.ProjectDir} {
		if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
			return nil, errors.New("expected the absolute path of a directory")
		}
	}
	said.Sandbox.Warnings = display.Lines(said.Sandbox.Warnings)
	for name, p := range said.Sandbox.Protections {
		p.Mechanism, p.Detail, p.Fix = display.Line(p.Mechanism), display.Line(p.Detail), display.Line(p.Fix)
		said.Sandbox.Protections[name] = p
	}
	return &shellEntry{
		StartedParams: protocol.StartedParams{
			SessionID: spawn.NewID(), Kind: said.Kind, PID: said.PID, ShellPID: shell.PID, Argv: said.Argv,
			Cwd: filepath.Clean(said.Cwd), ProjectDir: filepath.Clean(said.ProjectDir), PolicyID: said.PolicyID,
			Sandbox: said.Sandbox,
		},
		tracking: said.Tracking, startedAt: time.Now(),
	}, nil
}

// shellQuestions are those of one shell that wait for an answer.
type shellQuestions struct {
	asked sync.WaitGroup

	mu     sync.Mutex // guards cancel
	cancel map[int]context.CancelFunc
}

// handleShell passes on one message. The shell has made its texts safe to show;
// that is done once more, because another program may have sent them.
func (s *Server) handleShell(ctx context.Context, shell *window.Shell, e *shellEntry, questions *shellQuestions,
	message window.FromShell,
) error {
	switch {
	case message.Denied != nil:
		denied := *message.Denied
		denied.SessionID = e.SessionID
		denied.Message, denied.Hint = display.Line(denied.Message), display.Line(denied.Hint)
		denied.Line, denied.Detail = display.Line(denied.Line), display.Line(denied.Detail)
		denied.Suggestion = shown(denied.Suggestion)
		notify(s, protocol.Denied, denied)
	case message.Limit != nil:
		limit := *message.Limit
		limit.SessionID, limit.Message = e.SessionID, display.Line(limit.Message)
		notify(s, protocol.LimitReached, limit)
	case message.Ask != nil:
		return s.askForShell(ctx, shell, e, questions, *message.Ask)
	case message.Withdraw != nil:
		questions.mu.Lock()
		defer questions.mu.Unlock()
		if cancel := questions.cancel[*message.Withdraw]; cancel != nil {
			cancel()
		}
	case message.Log != "":
		s.logMessage(protocol.LogError, "%s", display.Line(message.Log))
	case message.Ended == nil:
		return errors.New("expected a message")
	}
	return nil
}

func shown(suggestion *protocol.Suggestion) *protocol.Suggestion {
	if suggestion == nil {
		return nil
	}
	safe := *suggestion
	safe.Message, safe.Instruction = display.Line(safe.Message), display.Line(safe.Instruction)
	return &safe
}

// askForShell asks the editor's user, and answers the shell later.
func (s *Server) askForShell(ctx context.Context, shell *window.Shell, e *shellEntry, questions *shellQuestions,
	ask window.Ask,
) error {
	ctx, cancel := context.WithCancel(ctx)
	questions.mu.Lock()
	defer questions.mu.Unlock()
	if _, taken := questions.cancel[ask.ID]; taken || len(questions.cancel) >= maxQuestions {
		cancel()
		return fmt.Errorf("question %d: there are %d already", ask.ID, len(questions.cancel))
	}
	questions.cancel[ask.ID] = cancel
	question := ask.Question
	question.SessionID = e.SessionID
	question.Message, question.Hint = display.Line(question.Message), display.Line(question.Hint)
	question.Suggestion = shown(question.Suggestion)
	questions.asked.Go(func() {
		defer func() {
			cancel()
			questions.mu.Lock()
			defer questions.mu.Unlock()
			delete(questions.cancel, ask.ID)
		}()
		var result protocol.RequestAccessResult
		err := s.conn.Call(ctx, protocol.RequestAccess.Method, question, &result)
		switch {
		case ctx.Err() != nil:
			return // nobody waits for the answer
		case err != nil:
			s.log.Info("the editor did not answer a shell's question", "session", e.SessionID, "error", err)
			result.Decision = "" // the shell asks on its terminal
		case result.Decision == "":
			result.Decision = protocol.DecisionDeny // the shell itself refuses what it has not offered
		}
		shell.Answer(window.Answer{ID: ask.ID, Decision: result.Decision})
	})
	return nil
}

// baseline is the policy that a new session gets, as compiled since the last
// change of settings.
func (s *Server) baseline(k policyKey) string {
	s.shells.mu.Lock()
	id, known := s.shells.baselines[k]
	s.shells.mu.Unlock()
	if known {
		return id
	}
	id = s.compileFor(k)
	s.shells.mu.Lock()
	defer s.shells.mu.Unlock()
	if len(s.shells.baselines) < maxBaselines {
		s.shells.baselines[k] = id
	}
	return id
}

// maxBaselines bounds the policies that are remembered.
const maxBaselines = 256

// staleShells are the shells' sessions whose policy has changed.
func (s *Server) staleShells(current func(*entry) string) []protocol.StaleSession {
	s.shells.mu.Lock()
	clear(s.shells.baselines)
	s.shells.mu.Unlock()
	var stale []protocol.StaleSession
	for _, e := range s.shells.all() {
		if id := current(e.like()); id != "" && e.baseline != "" && id != e.baseline && s.shells.running(e) {
			stale = append(stale, protocol.StaleSession{
				SessionID: e.SessionID, PolicyID: e.PolicyID, CurrentPolicyID: id,
			})
		}
	}
	return stale
}

// closeShell forgets a session that has ended. Nobody but its shell can end it.
func (s *Server) closeShell(id string) (protocol.CloseResult, error) {
	end, known := s.shells.take(id)
	switch {
	case !known:
		return protocol.CloseResult{}, sessionNotFound(id)
	case end == nil:
		return protocol.CloseResult{}, &wireError{
			code: protocol.CodeInvalidRequest, message: "terminal/close: the session was not started by this sidecar",
			data: &protocol.ErrorData{Reason: "a shell has started it", Hint: "end it where it was started"},
		}
	}
	return protocol.CloseResult{
		ExitCode: end.Status.ExitCode, Signal: end.Status.Signal, Review: shownReview(end),
	}, nil
}

func (t *shells) add(e *shellEntry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries[e.SessionID] = e
}

// markEnded records the end of a session, and calls tell before anybody can take
// it: the editor closes the session as soon as it knows. It forgets the oldest
// ended one if there are too many.
func (t *shells) markEnded(e *shellEntry, end *window.Ended, tell func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.end = end
	tell()
	t.ended = append(t.ended, e.SessionID)
	if len(t.ended) > maxEndedShells {
		delete(t.entries, t.ended[0])
		t.ended = t.ended[1:]
	}
}

func (t *shells) all() []*shellEntry {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*shellEntry
	for _, e := range t.entries {
		all = append(all, e)
	}
	return all
}

func (t *shells) running(e *shellEntry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.end == nil
}

// take removes a session that has ended, and returns its end.
func (t *shells) take(id string) (end *window.Ended, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id]
	if e == nil {
		return nil, false
	}
	if e.end != nil {
		delete(t.entries, id)
		t.ended = slices.DeleteFunc(t.ended, func(ended string) bool { return ended == id })
	}
	return e.end, true
}
