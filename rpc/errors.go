package rpc

import (
	"errors"
	"fmt"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

// wireError is an error with its place in the protocol. The message is what the user reads: lower case, what was attempted, on what,
// cause. The hint says what the user can do and travels beside it.
type wireError struct {
	code    protocol.Code
	message string
	data    *protocol.ErrorData
}

func (e *wireError) Error() string { return e.message }

// invalidParams names the field of params, such as "cwd", and what is wrong with it.
func invalidParams(field, format string, args ...any) *wireError {
	return &wireError{code: protocol.CodeInvalidParams, message: fmt.Sprintf("params.%s: %s", field, fmt.Sprintf(format, args...))}
}

func sessionNotFound(id string) *wireError {
	return &wireError{
		code: protocol.CodeSessionNotFound, message: fmt.Sprintf("session %s: not found", display.Quote(id)),
		data: &protocol.ErrorData{Reason: "it never was, or it was closed"},
	}
}

// toWire gives every error its code.
func toWire(err error) *jsonrpc2.Error {
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
	out := &jsonrpc2.Error{Code: int64(wire.code), Message: display.Line(wire.message)}
	if wire.data != nil {
		out.SetError(&protocol.ErrorData{Reason: display.Line(wire.data.Reason), Path: wire.data.Path, Hint: display.Line(wire.data.Hint)})
	}
	return out
}
