package rpc

import (
	"errors"
	"fmt"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// wireError is an error with its place in the protocol. The message is what the
// user reads: lower case, what was attempted, on what, cause. The hint says
// what the user can do and travels beside it.
type wireError struct {
	code    protocol.Code
	message string
	data    *protocol.ErrorData
}

func (e *wireError) Error() string { return e.message }

// invalidParams names the field of params, such as "cwd", and what is wrong
// with it.
func invalidParams(field, format string, args ...any) *wireError {
	return &wireError{code: protocol.CodeInvalidParams,
		message: fmt.Sprintf("params.%s: %s", field, fmt.Sprintf(format, args...))}
}

// settingsInvalid says which file has to be fixed before anything starts.
func settingsInvalid(doubt *settings.Doubt) *wireError {
	reason := "nobody knows what the settings ask for, so tools do not start"
	if doubt.Named {
		reason = "nothing starts without the settings file that was asked for"
	}
	what := doubt.Message
	if doubt.Key != "" {
		what = display.Text(doubt.Key) + ": " + what
	}
	return &wireError{
		code:    protocol.CodeSettingsInvalid,
		message: fmt.Sprintf("read settings: %s:%d:%d: %s", display.Text(doubt.File), doubt.Line, doubt.Column, what),
		data:    &protocol.ErrorData{Reason: reason, Path: doubt.File, Hint: "fix the file; it is read again at once"},
	}
}

func sessionNotFound(id string) *wireError {
	return &wireError{
		code: protocol.CodeSessionNotFound, message: fmt.Sprintf("session %s: not found", display.Quote(id)),
		data: &protocol.ErrorData{Reason: "it never was, or it was closed"},
	}
}

// toWire gives every error its code.
func toWire(err error) *responseError {
	var wire *wireError
	var start *spawn.Error
	switch {
	case errors.As(err, &wire):
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
	// The last defence for a path or a name that nobody quoted. Data names the
	// raw path.
	out := &responseError{Code: wire.code, Message: display.Line(wire.message)}
	if wire.data != nil {
		out.Data = &protocol.ErrorData{Reason: display.Line(wire.data.Reason), Path: wire.data.Path,
			Hint: display.Line(wire.data.Hint)}
	}
	return out
}
