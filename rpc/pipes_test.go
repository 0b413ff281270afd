//go:build unix

package rpc

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// A command with pipes gets its input to the end, also what came before it has
// started, and its errors are apart.
func TestSpawn_Pipes(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	f := start(t, &platformtest.Fake{Hold: hold}, `{"enabled": true}`)
	e := f.connect()
	id := uuid.NewString()
	answered := make(chan error, 1)
	go func() {
		_, err := try(e, protocol.Spawn, protocol.SpawnParams{
			SessionID: id, Kind: protocol.Tool, Cwd: f.dir, Command: "cat; echo end >&2",
			Pipe: true, Stdin: true, Stderr: true,
		})
		answered <- err
	}()
	hold.Arrived(t)
	e.typeText(id, "early ")
	hold.Release(t)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	e.typeText(id, "late ")
	e.output(id, "early late ")
	e.notify(protocol.Input.Method, protocol.InputParams{SessionID: id, Data: []byte("last"), CloseStdin: true})
	if code := e.exit(id); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if out := e.printed(id); out != "early late last" {
		t.Errorf("output %q", out)
	}
	if errors := e.printed(id + protocol.StreamStderr); errors != "end\n" {
		t.Errorf("errors %q", errors)
	}
}

// The limits of a command are kept, and its end says which of them were reached. The
// control reaches none.
func TestSpawn_Limits(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	e := f.connect()
	for name, test := range map[string]struct {
		params  protocol.SpawnParams
		printed int
		want    protocol.ExitedParams
	}{
		"time": {
			protocol.SpawnParams{Command: "exec sleep 1000", TimeoutMs: 1}, 0, protocol.ExitedParams{TimedOut: true},
		},
		"output": {
			protocol.SpawnParams{Command: "seq 1000", OutputBytesCap: 7},
			7,
			protocol.ExitedParams{DroppedBytes: 3886},
		},
		"neither": {
			protocol.SpawnParams{Command: "seq 1000", TimeoutMs: int(maxTimeout.Milliseconds()), OutputBytesCap: 3893},
			3893,
			protocol.ExitedParams{},
		},
	} {
		params := test.params
		params.Kind, params.Cwd, params.Pipe = protocol.Tool, f.dir, true
		id := call(e, protocol.Spawn, params).SessionID
		e.exit(id)
		e.mu.Lock()
		got := e.exits[id]
		e.mu.Unlock()
		if got.TimedOut != test.want.TimedOut || got.DroppedBytes != test.want.DroppedBytes ||
			len(e.printed(id)) != test.printed {
			t.Errorf("%s: %+v, and %d bytes", name, got, len(e.printed(id)))
		}
	}
}

// What cannot be kept is refused, by its name, and nothing runs.
func TestSpawn_RefusesPipesAndLimitsThatAreNone(t *testing.T) {
	t.Parallel()
	f := start(t, &platformtest.Fake{}, `{"enabled": false}`)
	e := f.connect()
	for field, params := range map[string]protocol.SpawnParams{
		"stdin": {Stdin: true}, "stderr": {Stderr: true}, "timeoutMs": {Pipe: true, TimeoutMs: -1},
		"outputBytesCap": {Pipe: true, OutputBytesCap: -1},
	} {
		params.Kind, params.Cwd, params.Command = protocol.Tool, f.dir, "touch ran"
		_, err := try(e, protocol.Spawn, params)
		if got := refused(t, err, protocol.CodeInvalidParams); !strings.HasPrefix(got.Message, "params."+field+":") {
			t.Errorf("%s: %s", field, got.Message)
		}
	}
	if list := call(e, protocol.List, protocol.Empty{}); len(list.Sessions) > 0 {
		t.Errorf("sessions: %+v", list.Sessions)
	}
}

// The editor can cancel a wait, which leaves the session alone, and a start, of
// which nothing is left.
func TestCancelRequest(t *testing.T) {
	t.Parallel()
	hold := platformtest.NewHold(t)
	f := start(t, &platformtest.Fake{Hold: hold}, `{"enabled": true}`)
	e := f.connect() // by the request 1
	// cancelled sends a cancellation until the request was answered, as the request
	// may arrive after the first.
	cancelled := func(id int, answers <-chan error) (err error) {
		t.Helper()
		if !deadline.Until(timeout, func() bool {
			e.notify(protocol.CancelRequest.Method, map[string]any{"id": id})
			select {
			case err = <-answers:
				return true
			default:
				return false
			}
		}) {
			t.Fatalf("request %d is not answered", id)
		}
		return err
	}
	id, answers := uuid.NewString(), make(chan error, 1)
	params := protocol.SpawnParams{
		SessionID: id, Kind: protocol.Tool, Cwd: f.dir, Command: "cat", Pipe: true, Stdin: true,
	}
	go func() {
		_, err := try(e, protocol.Spawn, params) // the request 2
		answers <- err
	}()
	hold.Arrived(t)
	refused(t, cancelled(2, answers), protocol.CodeRequestCancelled)
	if list := call(e, protocol.List, protocol.Empty{}); len(list.Sessions) > 0 { // the request 3
		t.Errorf("sessions: %+v", list.Sessions)
	}
	go func() {
		_, err := try(e, protocol.Spawn, params) // the request 4
		answers <- err
	}()
	hold.Arrived(t)
	hold.Release(t)
	if err := <-answers; err != nil {
		t.Fatalf("control: %v", err)
	}
	go func() {
		_, err := try(e, protocol.Wait, protocol.SessionParams{SessionID: id}) // the request 5
		answers <- err
	}()
	refused(t, cancelled(5, answers), protocol.CodeRequestCancelled)
	e.typeText(id, "alive")
	e.output(id, "alive")
	call(e, protocol.Close, protocol.CloseParams{SessionID: id})
}
