package rpc

import (
	"context"
	"fmt"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker asks the editor's user on behalf of a session; nil where the editor has not announced that it can.
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
	case <-e.told: // a client does not know the session before
	case <-ctx.Done():
		return spawn.AnswerDeny
	}
	snapshot := s.store.Snapshot(e.projectDir)
	suggestion, err := snapshot.Suggest(settings.Kind(e.kind), string(denial.Access), denial.Target)
	if err != nil || suggestion.Key == "" || !isGrant(suggestion) {
		return spawn.AnswerDeny // credentials, protected paths, and what no setting allows are nobody's to allow by one click
	}
	params := protocol.RequestAccessParams{
		SessionID: e.id, Access: string(denial.Access), Target: denial.Target, Process: wireProcess(denial), Hint: suggestion.Hint,
		Choices:    []protocol.Decision{protocol.DecisionDeny, protocol.DecisionOnce, protocol.DecisionSession},
		Suggestion: &protocol.Suggestion{Setting: suggestion.Key, Value: suggestion.JSON()},
	}
	for _, scope := range []settings.Scope{settings.ScopeProject, settings.ScopeUser} {
		if snapshot.Allowable(scope, suggestion) == nil {
			params.Choices = append(params.Choices, protocol.Decision(scope))
		}
	}
	var result protocol.RequestAccessResult
	if err := s.conn.Call(ctx, protocol.RequestAccess.Method, params, &result); err != nil {
		s.log.Info("nobody answers for the user: refused", "session", e.id, "target", denial.Target, "error", err)
		return spawn.AnswerDeny
	}
	if !slices.Contains(params.Choices, result.Decision) || ctx.Err() != nil {
		return spawn.AnswerDeny
	}
	s.log.Info("the user was asked", "session", e.id, "access", denial.Access, "target", denial.Target, "decision", result.Decision)
	switch result.Decision {
	case protocol.DecisionOnce:
		return spawn.AnswerOnce
	case protocol.DecisionSession:
		return spawn.AnswerSession
	case protocol.DecisionProject, protocol.DecisionUser:
		if err := s.store.Allow(settings.Scope(result.Decision), e.projectDir, suggestion); err != nil {
			// The user has allowed it all the same; only later sessions do not know.
			notify(s, protocol.LogMessage, protocol.LogMessageParams{
				Type: protocol.LogError, Message: fmt.Sprintf("%s is allowed in this session alone: %v", quoted(denial.Target), err),
			})
		}
		return spawn.AnswerSession
	}
	return spawn.AnswerDeny
}

// isGrant reports whether a suggestion grants paths.
func isGrant(s settings.Suggestion) bool {
	return s.Key == "toolchains" || s.Key == "additional_read_only_paths" || s.Key == "additional_read_write_paths"
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }
