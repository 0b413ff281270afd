package rpc

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Denied tells the editor, with the setting that would allow it. How often it
// is called the session bounds.
func (k *sink) Denied(denial spawn.Denial) {
	params := protocol.DeniedParams{
		SessionID: k.entry.id, Access: string(
			denial.Access), Target: denial.Target, Process: wireProcess(denial), Count: denial.Count,
		Missed: denial.Missed,
	}
	suggestion, err := k.server.store.Snapshot(k.entry.projectDir).Suggest(settings.Kind(k.entry.kind),
		string(denial.Access), denial.Target, denial.Process)
	if err != nil {
		k.server.log.Debug("no setting is found for a denial", "session", k.entry.id, "error", err)
	}
	params.Hint = display.Line(suggestion.Hint)
	params.Message = DenialMessage(denial, suggestion)
	if suggestion.Key != "" {
		params.Suggestion = wireSuggestion(suggestion)
	}
	k.server.log.Info("refused", "session", k.entry.id, "access", denial.Access, "target", denial.Target, "process",
		denial.Process, "count", denial.Count)
	notify(k.server, protocol.Denied, params)
}

func wireSuggestion(s settings.Suggestion) *protocol.Suggestion {
	return &protocol.Suggestion{Setting: s.Key, Value: s.JSON(), Message: s.Instruction()}
}

func wireProcess(denial spawn.Denial) *protocol.Process {
	if denial.PID == 0 {
		return nil
	}
	return &protocol.Process{PID: denial.PID, Name: denial.Process}
}
