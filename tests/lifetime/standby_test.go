//go:build linux

package lifetime

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// waitingStages are the stages of a sidecar that have no order yet: its
// children, or those of its subreapers.
func waitingStages(sidecar int) []int {
	parents := []int{sidecar}
	for pid := range children(sidecar) {
		if isSubreaper(pid) {
			parents = append(parents, pid)
		}
	}
	var stages []int
	for _, parent := range parents {
		for pid := range children(parent) {
			cmdline, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			if args := splitArgs(cmdline); len(args) > 1 && args[1] == "stage" {
				stages = append(stages, pid)
			}
		}
	}
	return stages
}

// startStandby starts a sidecar with a standby stage.
func startStandby(t *testing.T, mode trackingMode) (e *harness.Editor, stage int) {
	t.Helper()
	e = harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil), Wrap: mode.wrap(t)})
	return e, awaitStandby(t, e)
}

// onStandby starts a session beside a stage on standby, which it should become.
// A stage that does not answer within a second, because the machine is so busy,
// is replaced. That does not happen again and again.
func onStandby(t *testing.T, mode trackingMode, spawn func(*harness.Editor) *harness.Session) (
	s *harness.Session, stage int,
) {
	t.Helper()
	for range 5 {
		var e *harness.Editor
		e, stage = startStandby(t, mode)
		if s = spawn(e); s.PID == stage {
			break
		}
	}
	return s, stage
}

// standbyLine is the line of the log that has the id of a stage on standby.
var standbyLine = regexp.MustCompile(`a stage is on standby" pid=(\d+)`)

func awaitStandby(t *testing.T, e *harness.Editor) (stage int) {
	t.Helper()
	if _, status := e.Tool("true"); status != 0 {
		t.Fatalf("status %d", status)
	}
	stage, _ = strconv.Atoi(e.Log.Await(t, standbyLine.String())[1])
	if stages := waitingStages(e.Process()); !slices.Equal(stages, []int{stage}) {
		t.Fatalf("stage %d is on standby, and these wait: %d", stage, stages)
	}
	return stage
}

// A standby stage becomes the leader of the next session, which is confined
// like any other. It does not outlive its purpose.
func TestAStandbyStage(t *testing.T) {
	t.Parallel()
	if !harness.Namespaces(t) {
		harness.Skip(t, "user_namespaces", "without them no stage is started ahead")
	}
	modes := trackingModes(t)
	for i, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			next := i // in its turn, each variant has one mode
			variant := func(name string, run func(t *testing.T)) {
				if next++; harness.Turn(t, next, len(modes)) {
					t.Run(name, run)
				}
			}
			variant("becomes the next session", func(t *testing.T) {
				t.Parallel()
				s, stage := onStandby(t, mode, func(e *harness.Editor) *harness.Session {
					return e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "ls /; echo x >mine; cat mine"})
				})
				if s.PID != stage {
					t.Errorf("process %d was started although %d was waiting", s.PID, stage)
				}
				if s.Exit(); !strings.HasSuffix(s.Output(), "Permission denied\nx\n") {
					t.Errorf("it printed %q", s.Output())
				}
				if !s.Sandbox.Applied || s.Sandbox.Protections["filesystem"].Status != "enforced" {
					t.Errorf("sandbox: %+v", s.Sandbox)
				}
			})
			variant("is there for a session that follows at once", func(t *testing.T) {
				t.Parallel()
				e, _ := startStandby(t, mode)
				const sessions = 10
				pids := map[int]bool{}
				for range sessions {
					s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"})
					s.Exit()
					pids[s.PID] = true
				}
				reused := 0
				for _, found := range standbyLine.FindAllStringSubmatch(e.Log.String(), -1) {
					if pid, _ := strconv.Atoi(found[1]); pids[pid] {
						reused++
					}
				}
				t.Logf("%d of %d sessions got a stage that was there", reused, sessions)
				if reused < sessions/2 {
					t.Errorf("only %d of %d sessions got a stage that was there", reused, sessions)
				}
			})
			variant("enters the namespaces of the session that it becomes", func(t *testing.T) {
				t.Parallel()
				s, stage := onStandby(t, mode, func(e *harness.Editor) *harness.Session {
					changed := make(chan struct{}, 1)
					client.On(e.Client, protocol.SettingsChanged, func(protocol.SettingsChangedParams) {
						select {
						case changed <- struct{}{}:
						default:
						}
					})
					harness.Write(t, e.World.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
					<-changed
					const line = "ls /sys/class/net 2>/dev/null; cat /proc/net/dev"
					return e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
				})
				s.Exit()
				if s.PID != stage || s.Sandbox.Protections["network"].Status != "enforced" {
					t.Errorf("process %d, where %d was started before the setting changed: %+v", s.PID, stage,
						s.Sandbox)
				}
				if lines := strings.Count(s.Output(), ":"); lines != 1 {
					t.Errorf("not one interface, the loopback: %q", s.Output())
				}
			})
			variant("is replaced where it has died", func(t *testing.T) {
				t.Parallel()
				e, stage := startStandby(t, mode)
				kill(t, stage, unix.SIGKILL)
				harness.MustEnd(t, "it is dead", func() bool { return !harness.Alive(stage) })
				if output, status := e.Tool("echo on"); status != 0 || output != "on\n" {
					t.Errorf("status %d, %q", status, output)
				}
			})
			variant("is replaced where it is stopped", func(t *testing.T) {
				t.Parallel()
				// A stage that is not on standby has thirty seconds.
				harness.Quick(t, "the next session", 10*time.Second, func() time.Duration {
					e, stage := startStandby(t, mode)
					harness.Stop(t, stage)
					took := deadline.Took(e.Process(), func() {
						if output, status := e.Tool("echo on"); status != 0 || output != "on\n" {
							t.Errorf("status %d, %q", status, output)
						}
					})
					harness.MustEnd(t, "the stage that was stopped has ended", func() bool {
						return !harness.Alive(stage)
					})
					return took
				})
			})
			variant("ends with the sidecar, however that ends", func(t *testing.T) {
				t.Parallel()
				e, stage := startStandby(t, mode)
				kill(t, e.Process(), unix.SIGKILL)
				harness.MustEnd(t, "the stage has ended", func() bool { return !harness.Alive(stage) })
				harness.NoTrace(t, e.World, e.Process())
			})
			variant("ends with the conversation", func(t *testing.T) {
				t.Parallel()
				e, stage := startStandby(t, mode)
				harness.Call(e, protocol.Shutdown, protocol.Empty{})
				if harness.Alive(stage) || len(waitingStages(e.Process())) > 0 {
					harness.Breach(t, "stage %d lives after shutdown", stage)
				}
			})
			variant("ends when nobody needs it", func(t *testing.T) {
				t.Parallel()
				e, stage := startStandby(t, mode)
				harness.MustEnd(t, "the stage has ended", func() bool { return !harness.Alive(stage) })
				harness.MustEnd(t, "its cgroup is gone", func() bool {
					return len(e.World.Cgroups(t, e.Process())) <= 1
				})
			})
		})
	}
}
