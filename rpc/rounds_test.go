//go:build unix

package rpc

import (
	"runtime"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// Sessions end in every way: by close, by a close before they have started, by
// their leader's exit, and by a start that fails. The test is not parallel, so
// that it counts only its own goroutines.
func TestSessions_LeaveNoGoroutine(t *testing.T) {
	f := start(t, &platformtest.Fake{}, `{"enabled": true, "apply_to": "tool"}`)
	e := f.connect()
	kinds := []protocol.Kind{protocol.Tool, protocol.Terminal}
	round := func(i int) {
		params := protocol.SpawnParams{Cwd: f.dir, Kind: kinds[i%2], Command: "sleep 300"}
		switch i % 4 {
		case 0:
			call(e, protocol.Close, protocol.CloseParams{
				SessionID: call(e, protocol.Spawn, params).SessionID,
				GraceMs:   new(int),
			})
		case 1:
			params.Command = "exit 3"
			session := call(e, protocol.Spawn, params)
			if code := e.exit(session.SessionID); code != 3 {
				t.Errorf("got exit code %d", code)
			}
			call(e, protocol.Close, protocol.CloseParams{SessionID: session.SessionID})
		case 2:
			params.Command, params.Args = "/nonexistent", []string{"argument"}
			_, err := try(e, protocol.Spawn, params)
			refused(t, err, protocol.CodeSpawnFailed)
		case 3:
			params.SessionID = "00000000-0000-4000-8000-000000000000"
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = try(e, protocol.Spawn, params)
			}()
			for done := false; !done; {
				_, err := try(e, protocol.Close, protocol.CloseParams{SessionID: params.SessionID, GraceMs: new(int)})
				select {
				case <-answered:
					// A close that came too early found no session. The next one
					// closes what runs now.
					done = err == nil || len(call(e, protocol.List, protocol.Empty{}).Sessions) == 0
				default:
				}
			}
		}
	}
	for i := range 8 {
		round(i)
	}
	settled := func(atMost int) (n int) {
		deadline.Until(timeout, func() bool {
			n = runtime.NumGoroutine()
			return n <= atMost
		})
		return n
	}
	before := runtime.NumGoroutine()
	const rounds = 60
	for i := range rounds {
		round(i)
	}
	after := settled(before)
	t.Logf("%d goroutines before %d rounds, %d after", before, rounds, after)
	if after > before {
		stacks := make([]byte, 1<<20)
		t.Errorf("goroutines are left:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}
