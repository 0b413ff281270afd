//go:build linux

package lifetime

import (
	"os"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A thread of the leader makes the sidecar its tracer and so, once dead, waits to be reaped by it: the session can be closed all the same.
func TestALeaderWhoseThreadIsTracedCanBeClosed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		harness.Lack(t, "python3", err.Error())
	}
	const script = `
import ctypes, threading, time
libc = ctypes.CDLL(None)
def trace():
    print("ptrace:", libc.ptrace(0, 0, 0, 0), flush=True)
    time.sleep(1000)
threading.Thread(target=trace).start()
`
	for _, settings := range []string{harness.Defaults(nil), harness.Off()} {
		e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings})
		s := e.Spawn(protocol.SpawnParams{Command: python, Args: []string{"-c", script}})
		s.Await("ptrace: 0")
		if result := s.Close(0); result.Remaining != 0 {
			t.Errorf("got %+v", result)
		}
	}
}
