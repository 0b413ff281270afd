package rpc

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/session"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// wireError is an error with its code in the protocol. The user reads the
// message: in lower case, what was tried, on what, and why it failed. The hint
// in data says what the user can do.
type wireError struct {
	code    protocol.Code
	message string
	data    *protocol.ErrorData
}

func (e *wireError) Error() string { return e.message }

// invalidParams names a field of params, such as "cwd", and says what is wrong
// with it.
func invalidParams(field, format string, args ...any) *wireError {
	return &wireError{
		code:    protocol.CodeInvalidParams,
		message: fmt.Sprintf("params.%s: %s", field, fmt.Sprintf(format, args...)),
	}
}

// notAdmitted is the answer to terminal/spawn if the session may not start as
// the settings are; nil if err is no such reason.
func notAdmitted(err error) *wireError {
	var doubtful *session.DoubtError
	switch {
	case errors.As(err, &doubtful):
		return settingsInvalid(doubtful.Doubt)
	case errors.Is(err, session.ErrOff):
		return &wireError{
			code: protocol.CodeSandboxUnavailable, message: err.Error(),
			data: &protocol.ErrorData{Reason: "every session must be sandboxed here"},
		}
	case errors.Is(err, session.ErrPolicyChanged):
		return &wireError{
			code: protocol.CodePolicyChanged, message: err.Error(),
			data: &protocol.ErrorData{Reason: "policyId names another policy"},
		}
	}
	return nil
}

// settingsInvalid names the file that must be fixed before a session starts.
func settingsInvalid(doubt *compile.Doubt) *wireError {
	reason := "it is unclear what the settings ask for, so tools do not start"
	if doubt.Named {
		reason = "no session starts without the settings file that was named"
	}
	hint := "fix the file; the sidecar reads it again at once"
	if doubt.Managed() {
		reason = "no session starts while your organisation's settings are wrong"
		hint = "ask whoever administers this machine to fix the file"
	}
	what := doubt.Message
	if doubt.Key != "" {
		what = display.Text(doubt.Key) + ": " + what
	}
	return &wireError{
		code:    protocol.CodeSettingsInvalid,
		message: fmt.Sprintf("read settings: %s:%d:%d: %s", display.Text(doubt.File), doubt.Line, doubt.Column, what),
		data: &protocol.ErrorData{
			Reason: reason, Path: doubt.File, Hint: hint,
		},
	}
}

// sessionNotFound is the answer for an unknown session id.
func sessionNotFound(id string) *wireError {
	return &wireError{
		code: protocol.CodeSessionNotFound, message: fmt.Sprintf("session %s: not found", display.Quote(id)),
		data: &protocol.ErrorData{Reason: "it never existed, or it was closed"},
	}
}

// toWire converts an error to the protocol's form. An error without a code is
// CodeInternalError.
func toWire(err error) *jsonrpc2.Error {
	wire := notAdmitted(err)
	var start *spawn.Error
	switch {
	case wire != nil, errors.As(err, &wire):
	case errors.As(err, &start):
		wire = &wireError{
			code: protocol.CodeSpawnFailed, message: start.Error(),
			data: &protocol.ErrorData{Reason: start.Cause.Error(), Path: start.Path, Hint: start.Hint},
		}
		if errors.Is(err, spawn.ErrUnavailable) {
			wire.code = protocol.CodeSandboxUnavailable
		}
	case errors.Is(err, spawn.ErrEnded):
		wire = &wireError{
			code: protocol.CodeSessionNotFound, message: err.Error(),
			data: &protocol.ErrorData{Reason: "its leader has ended; it can still be closed"},
		}
	default:
		wire = &wireError{code: protocol.CodeInternalError, message: err.Error()}
	}
	// The last defence against a path or a name that was not quoted. Only
	// Data.Path is raw.
	out := &jsonrpc2.Error{Code: int64(wire.code), Message: display.Line(wire.message)}
	if wire.data != nil {
		out.SetError(protocol.ErrorData{
			Reason: display.Line(wire.data.Reason), Path: wire.data.Path,
			Hint: display.Line(wire.data.Hint),
		})
	}
	return out
}
