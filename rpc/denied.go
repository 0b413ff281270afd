package rpc

import (
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// Denied tells the editor, with the setting that would allow it. How often it is called the session bounds.
func (k *sink) Denied(denial spawn.Denial) {
	params := protocol.DeniedParams{
		SessionID: k.entry.id, Access: string(denial.Access), Target: denial.Target, Process: wireProcess(denial), Count: denial.Count,
		Missed: denial.Missed,
	}
	suggestion, err := k.server.store.Snapshot(k.entry.projectDir).Suggest(settings.Kind(k.entry.kind), string(denial.Access), denial.Target, denial.Process)
	if err != nil {
		k.server.log.Debug("no setting is found for a denial", "session", k.entry.id, "error", err)
	}
	params.Hint = suggestion.Hint
	if suggestion.Key != "" {
		params.Suggestion = &protocol.Suggestion{Setting: suggestion.Key, Value: suggestion.JSON()}
	}
	k.server.log.Info("refused", "session", k.entry.id, "access", denial.Access, "target", denial.Target, "process", denial.Process, "count", denial.Count)
	notify(k.server, protocol.Denied, params)
}

func wireProcess(denial spawn.Denial) *protocol.Process {
	if denial.PID == 0 {
		return nil
	}
	return &protocol.Process{PID: denial.PID, Name: denial.Process}
}

// DenialText is a denial for people, on one line whatever its parts hold.
func DenialText(denial spawn.Denial) string {
	text := fmt.Sprintf("%s %q", denial.Access, denial.Target)
	if denial.Process != "" {
		text += fmt.Sprintf(" by %q", denial.Process)
	}
	if denial.Count > 1 {
		text += fmt.Sprintf(", %d times", denial.Count)
	}
	return text
}
