package rpc

import (
	"context"

	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// asker returns the function that asks the editor's user on behalf of a
// session; nil if the editor did not announce approvals.
func (s *Server) asker(e *entry) func(context.Context, spawn.Denial) spawn.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.capabilities.Approvals {
		return nil
	}
	return func(ctx context.Context, denial spawn.Denial) spawn.Answer { return s.ask(ctx, e, denial) }
}

// ask waits for the user's decision. Any failure on the way refuses the access.
func (s *Server) ask(ctx context.Context, e *entry, denial spawn.Denial) spawn.Answer {
	select {
	case <-e.answered: // before that, the editor does not know the session
	case <-ctx.Done():
		return spawn.AnswerWithdrawn
	}
	question, suggestion, may := presentation.Question(s.store.Latest(e.projectDir), settings.Kind(e.kind), denial)
	switch {
	case !may:
		return spawn.AnswerUnasked
	case denial.Opened:
		return spawn.AnswerDirectory
	}
	question.SessionID = e.id
	var result protocol.RequestAccessResult
	if err := s.conn.Call(ctx, protocol.RequestAccess.Method, question, &result); err != nil {
		if ctx.Err() != nil {
			return spawn.AnswerWithdrawn
		}
		s.log.Info("access refused: the editor did not answer", "session", e.id, "target", denial.Target, "error", err)
		return spawn.AnswerDeny
	}
	s.log.Info("the user decided about an access", "session", e.id, "access", denial.Access, "target", denial.Target,
		"decision", result.Decision)
	answer, err := presentation.CarryOut(ctx, s.store, e.projectDir, question, suggestion, result.Decision)
	if err != nil {
		s.logMessage(protocol.LogError, "%s", presentation.Unwritten(answer, denial.Target, err))
	}
	return answer
}
