package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
)

func TestToWire(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want string
	}{
		{
			"invalid params name the field", invalidParams("cwd", "expected %s", "more"),
			`{"code":-32602,"message":"params.cwd: expected more"}`,
		},
		{
			"an unknown session", sessionNotFound("a"),
			`{"code":-32010,"message":"session \"a\": not found","data":{"reason":"it never existed, ` +
				`or it was closed"}}`,
		},
		{
			"an ended session has no foreground", fmt.Errorf("signal: %w", spawn.ErrEnded),
			`{"code":-32010,"message":"signal: session has ended",` +
				`"data":{"reason":"its leader has ended; it can still be closed"}}`,
		},
		{
			"a start that failed carries path and hint",
			fmt.Errorf("start: %w", &spawn.Error{
				Attempt: "execute", Path: "/x", Cause: errors.New("no such file or directory"),
				Hint: "install it",
			}),
			`{"code":-32011,"message":"execute: \"/x\": no such file or directory",` +
				`"data":{"reason":"no such file or directory","path":"/x","hint":"install it"}}`,
		},
		{
			"a start without a path",
			&spawn.Error{Attempt: "open a terminal", Cause: errors.New("none left")},
			`{"code":-32011,"message":"open a terminal: none left","data":{"reason":"none left"}}`,
		},
		{
			"a sandbox that cannot be",
			&spawn.Error{
				Attempt: "confine session", Cause: fmt.Errorf("%w: no kernel", spawn.ErrUnavailable), Hint: "doctor",
			},
			`{"code":-32012,"message":"confine session: sandbox unavailable: no kernel",` +
				`"data":{"reason":"sandbox unavailable: no kernel","hint":"doctor"}}`,
		},
		{
			"a wire error inside keeps its own code",
			fmt.Errorf("outer: %w", &wireError{code: protocol.CodeSettingsInvalid, message: "inner"}),
			`{"code":-32013,"message":"inner"}`,
		},
		{"anything else is internal", errors.New("boom"), `{"code":-32603,"message":"boom"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(toWire(test.err))
			if err != nil || string(got) != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}
