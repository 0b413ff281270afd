//go:build linux

package lifetime

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ours are the roles of the processes that live as long as a session does.
var ours = []string{"sidecar", "watchdog", "subreaper", "domain-killer"}

// Any two of our processes are killed at once. Nothing of the session is left: the
// other ones end it, and after the death of the sidecar and its watchdog the next
// sidecar does. A sidecar that lives starts sessions as before. If variants take
// turns, each way of tracking has one sandbox.
func TestAnyTwoOfOurProcessesKilledAtOnceLeaveNothing(t *testing.T) {
	t.Parallel()
	rounds := 1
	if os.Getenv("SIDECAR_EVERY_STEP") != "" {
		rounds = 200
	}
	for j, mode := range trackingModes(t) {
		for k, sandbox := range sandboxes {
			if !harness.Turn(t, j+k, len(sandboxes)) {
				continue
			}
			t.Run(sandbox.name+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				tried := 0
				for i, one := range ours {
					for _, other := range ours[i+1:] {
						for round := range rounds {
							t.Run(fmt.Sprintf("%s and %s %d", one, other, round), func(t *testing.T) {
								if killTwo(t, sandbox.settings, mode.wrap(t), one, other) {
									tried++
								}
							})
						}
					}
				}
				if tried == 0 {
					t.Error("no pair was killed: this test shows nothing")
				}
			})
		}
	}
}

// killTwo starts a session, kills our processes with two roles, and checks what is
// left. It returns false if there is no process with one of the roles.
func killTwo(t *testing.T, settings string, wrap func(*exec.Cmd), one, other string) bool {
	t.Helper()
	w := harness.NewWorld(t)
	e, sidecar := reaped(t, w, settings, wrap)
	first := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"})
	first.Exit()
	first.Close(0)
	away := "" // without a guarantee, what leaves its session may not be found again
	if first.Tracking.Guarantee {
		away = "setsid "
	}
	token := fmt.Sprintf("300.%d", uuid.New().ID())
	s := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: fmt.Sprintf("%ssleep %s & sleep %s & echo up; wait", away, token, token),
	})
	s.Await("up")
	harness.Eventually(t, "both sleep", func() bool {
		sleeping := 0
		for _, pid := range harness.Find(token) {
			if comm(pid) == "sleep" {
				sleeping++
			}
		}
		return sleeping == 2
	})
	pids := byRole(t, w, sidecar, s)
	if pids[one] == 0 || pids[other] == 0 || one == "sidecar" && other == "subreaper" && away == "" && !autogroups() {
		mustLeaveNobody(t, e.Client)
		return false
	}
	victims := []int{pids[one], pids[other]}
	for _, i := range rand.Perm(len(victims)) {
		_ = unix.Kill(victims[i], unix.SIGKILL) // the first death may have ended the second
	}
	switch {
	case one == "sidecar" && other == "watchdog":
		// While the watchdog ends, the journal is in use, and is left alone.
		for _, pid := range victims {
			harness.Eventually(t, "both are dead", func() bool { return !harness.Alive(pid) })
		}
		next := harness.Start(t, w, harness.Options{Settings: settings})
		mustLeaveNobody(t, e.Client)
		harness.MustEnd(t, "the processes are dead", func() bool { return len(harness.Find(token)) == 0 })
		awaitSweep(t, w)
		_ = next.HangUp()
	case one == "sidecar":
		mustLeaveNobody(t, e.Client)
	default:
		harness.MustEnd(t, "the session has ended", func() bool { return len(harness.Find(token)) == 0 })
		harness.Eventually(t, "a session starts", func() bool {
			result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
				Kind: protocol.Tool, Cwd: w.Project, Command: "true",
			})
			return err == nil && e.Session(result).Exit().ExitCode != nil
		})
		mustLeaveNobody(t, e.Client)
	}
	if left := harness.Find(token); len(left) != 0 {
		harness.Breach(t, "%s and %s are killed, and %d processes are left", one, other, len(left))
	}
	harness.NoTrace(t, w, sidecar)
	return true
}

// byRole finds our processes of a session; those that there are not are 0.
func byRole(t *testing.T, w *harness.World, sidecar int, s *harness.Session) map[string]int {
	t.Helper()
	pids := map[string]int{"sidecar": sidecar, "watchdog": watchdogOf(t, w, sidecar)}
	if s.Tracking.Mechanism != "subreaper" {
		return pids
	}
	fields := stat(s.PID)
	if len(fields) < 2 {
		t.Fatalf("the leader %d has ended", s.PID)
	}
	subreaper, err := strconv.Atoi(fields[1])
	harness.Must(t, err)
	pids["subreaper"] = subreaper
	if killers := harness.DomainKillers(subreaper); len(killers) > 0 {
		pids["domain-killer"] = killers[0]
	}
	return pids
}

// autogroups reports whether the kernel tells a session from a later one with the
// same number, after its leader is gone (sched(7)).
func autogroups() bool {
	text, err := os.ReadFile("/proc/self/autogroup")
	return err == nil && len(text) > 0
}
