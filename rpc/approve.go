package rpc

import (
	"context"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker asks the editor's user on behalf of a session; nil where the editor has
// not announced that it can.
func (s *Server) asker(e *entry) func(context.Context, spawn.Denial) spawn.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.capabilities.Approvals {
		return nil
	}
	return func(ctx context.Context, denial spawn.Denial) spawn.Answer { return s.ask(ctx, e, denial) }
}

// ask waits for the user. Whatever goes wrong is a no.
func (s *Server) ask(ctx context.Context, e *entry, denial spawn.Denial) spawn.Answer {
	select {
	case <-e.answered: // a client does not know the session before
	case <-ctx.Done():
		return spawn.AnswerDeny
	}
	params, suggestion, may := Question(s.store.Snapshot(e.projectDir), settings.Kind(e.kind), denial)
	if !may {
		return spawn.AnswerDeny
	}
	params.SessionID = e.id
	var result protocol.RequestAccessResult
	if err := s.conn.Call(ctx, protocol.RequestAccess.Method, params, &result); err != nil {
		s.log.Info("nobody answers for the user: refused", "session", e.id, "target", denial.Target, "error", err)
		return spawn.AnswerDeny
	}
	if !slices.Contains(params.Choices, result.Decision) || ctx.Err() != nil {
		return spawn.AnswerDeny
	}
	s.log.Info("the user was asked", "session", e.id, "access", denial.Access, "target", denial.Target, "decision",
		result.Decision)
	answer, err := CarryOut(s.store, e.projectDir, suggestion, result.Decision)
	if err != nil {
		s.logMessage(protocol.LogError, "%s is allowed in this session alone: %v", display.Quote(denial.Target), err)
	}
	return answer
}

// Question is what a user is asked about a denial, but for the session; false
// where that is not to be asked: credentials, protected paths, and what no
// setting allows are nobody's to allow by one click.
func Question(snapshot *settings.Snapshot, kind settings.Kind, denial spawn.Denial) (protocol.RequestAccessParams,
	settings.Suggestion, bool) {
	suggestion, err := snapshot.Suggest(kind, string(denial.Access), denial.Target, denial.Process)
	if err != nil || !isGrant(suggestion) {
		return protocol.RequestAccessParams{}, settings.Suggestion{}, false
	}
	params := protocol.RequestAccessParams{
		Access: string(denial.Access), Target: denial.Target, Process: wireProcess(
			denial), Hint: display.Line(suggestion.Hint),
		Message:    QuestionMessage(denial),
		Choices:    []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession},
		Suggestion: wireSuggestion(suggestion),
	}
	for _, scope := range []settings.Scope{settings.ScopeProject, settings.ScopeUser} {
		if snapshot.Allowable(scope, suggestion) == nil {
			params.Choices = append(params.Choices, protocol.Decision(scope))
		}
	}
	return params, suggestion, true
}

// CarryOut does what a user has decided, and says what holds for the session.
// What cannot be written down is an error; the user has allowed it all the
// same, and only later sessions do not know.
func CarryOut(store *settings.Store, projectDir string, suggestion settings.Suggestion,
	decision protocol.Decision) (spawn.Answer, error) {
	switch decision {
	case protocol.DecisionOnce:
		return spawn.AnswerOnce, nil
	case protocol.DecisionSession:
		return spawn.AnswerSession, nil
	case protocol.DecisionProject, protocol.DecisionUser:
		return spawn.AnswerSession, store.Allow(settings.Scope(decision), projectDir, suggestion)
	}
	return spawn.AnswerDeny, nil
}

// isGrant reports whether a suggestion grants paths.
func isGrant(s settings.Suggestion) bool {
	return s.Key == "toolchains" || s.Key == "additional_read_only_paths" || s.Key == "additional_read_write_paths"
}
