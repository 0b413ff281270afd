//go:build linux

package lifetime

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// If /proc hides processes, a session without cgroups has the same guarantee,
// although its domain killer sees only its own domain there.
func TestTheGuaranteeHoldsWhereProcHidesProcesses(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	bare := harness.WithoutCgroups(t)
	for _, option := range []string{"hidepid=0", "hidepid=1", "hidepid=2", "hidepid=4", "subset=pid"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			hidden := harness.HiddenProcesses(t, option)
			w := harness.NewWorld(t)
			e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: func(command *exec.Cmd) {
				hidden(command)
				bare(command)
			}})
			s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: ownSession + "echo ready; exec sleep 1000"})
			s.Await("ready")
			if !s.Sandbox.Applied || !s.Tracking.Guarantee || s.Tracking.Mechanism != "subreaper" {
				t.Errorf("applied %t, tracking %+v", s.Sandbox.Applied, s.Tracking)
			}
			if denials := e.Hello.Capabilities.Enforcement["denials"]; denials.Status == protocol.Absent {
				t.Errorf("denials: %+v", denials)
			}
			if denials := s.Sandbox.Protections["denials"]; denials.Status == protocol.Absent {
				t.Errorf("denials: %+v", denials)
			}
			away := ownSessionPID(t, w)
			kill(t, e.Process(), unix.SIGKILL)
			harness.MustEnd(t, "all of the session is dead", func() bool {
				return !harness.Alive(away) && !harness.Alive(s.PID)
			})
		})
	}
}
