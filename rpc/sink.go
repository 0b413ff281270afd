package rpc

import (
	"github.com/sandbox-sidecar/sandbox-sidecar/presentation"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// sink sends what one session produces to the editor. Each call waits until the
// writer has taken the frame; see docs/design/flow-control.md.
type sink struct {
	server *Server
	entry  *entry
}

// Output sends terminal/output.
func (k *sink) Output(data []byte) {
	_ = k.server.stream.out.sendOutput(k.entry.id, k.entry.room, data, outputTail)
}

// Stderr sends terminal/output of the stream for errors.
func (k *sink) Stderr(data []byte) {
	_ = k.server.stream.out.sendOutput(k.entry.id, k.entry.room, data, stderrTail)
}

// Alarm sends sandbox/denied about a protected path.
func (k *sink) Alarm(alarm spawn.Alarm) {
	k.server.log.Warn("protected path", "session", k.entry.id, "what", alarm.Kind, "path", alarm.Path)
	notify(k.server, protocol.Denied, presentation.Alarm(k.entry.id, alarm))
}

// Denied sends sandbox/denied with the setting that would allow the access. The
// session's denial queue bounds how often it is called.
func (k *sink) Denied(denial spawn.Denial) {
	snapshot := k.server.store.Latest(k.entry.projectDir)
	suggestion, err := presentation.Suggest(snapshot, settings.Kind(k.entry.kind), denial)
	if err != nil {
		k.server.log.Debug("no setting found for a denial", "session", k.entry.id, "error", err)
	}
	k.server.log.Info("refused", "session", k.entry.id, "access", denial.Access, "target", denial.Target, "process",
		denial.Process, "count", denial.Count)
	notify(k.server, protocol.Denied, presentation.Denial(k.entry.id, denial, suggestion))
}

// Reached sends sandbox/limit.
func (k *sink) Reached(limit spawn.Reached) {
	k.server.log.Info("limit reached", "session", k.entry.id, "setting", limit.Key, "most", limit.Most)
	notify(k.server, protocol.LimitReached, presentation.LimitReached(k.entry.id, limit))
}

// Exited sends terminal/exited. Only session/review comes after it.
func (k *sink) Exited(exit spawn.Exit) {
	k.server.sessions.markEnded(k.entry.id)
	status := exitStatus(exit)
	params := protocol.ExitedParams{
		SessionID: k.entry.id, ExitCode: status.ExitCode, Signal: status.Signal, Hints: k.hints(exit),
	}
	if session := k.entry.current(); session != nil {
		params.Background, params.GroupEnded = session.Background(), session.GroupEnded()
		params.TimedOut, params.DroppedBytes = session.TimedOut(), session.Dropped()
		params.Killed = session.Killed()
	}
	notify(k.server, protocol.Exited, params)
}

// Reviewed sends session/review, unless there is nothing to check or the answer
// to terminal/close will say the same. That does not wait for processes that
// survive, nor for their review.
func (k *sink) Reviewed(findings []spawn.Finding) {
	k.entry.mu.Lock()
	k.entry.reviewed = true
	owed := k.entry.owed
	k.entry.mu.Unlock()
	if len(findings) > 0 && (owed || k.server.sessions.has(k.entry)) {
		notify(k.server, protocol.Reviewed, protocol.ReviewParams{
			SessionID: k.entry.id, Review: presentation.Findings(findings),
		})
	}
}

// hints are what the user may do about a command that failed.
func (k *sink) hints(exit spawn.Exit) []string {
	session := k.entry.current()
	if session == nil || k.entry.argv == nil {
		return nil
	}
	return presentation.Hints(presentation.Failed{
		Exit: exit, Argv: k.entry.argv, Outcome: session.Outcome(), Heard: session.Heard(),
		Reported: session.Reported(), HasToolchain: k.entry.hasToolchain, PassVariable: k.entry.passVariable,
		FirstTime: k.server.store.FirstTime,
	})
}
