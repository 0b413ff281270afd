//go:build linux

package attack

import (
	"context"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// endings are the ways a session ends.
var endings = map[string]func(t *testing.T, e *harness.Editor, s *harness.Session, leave func()){
	"close":       func(_ *testing.T, _ *harness.Editor, s *harness.Session, _ func()) { s.Close(0) },
	"grace":       func(_ *testing.T, _ *harness.Editor, s *harness.Session, _ func()) { s.Close(200) },
	"leader exit": func(_ *testing.T, _ *harness.Editor, s *harness.Session, leave func()) { leave(); s.Exit() },
	"stdin EOF":   func(_ *testing.T, e *harness.Editor, _ *harness.Session, _ func()) { _ = e.HangUp() },
	"SIGTERM": func(t *testing.T, e *harness.Editor, _ *harness.Session, _ func()) {
		must(t, syscall.Kill(e.Process(), syscall.SIGTERM))
		<-e.Gone()
		_ = e.HangUp() // waits for its end
	},
	"shutdown": func(t *testing.T, e *harness.Editor, _ *harness.Session, _ func()) {
		ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
		defer cancel()
		must(t, e.Quit(ctx))
	},
}

// Leaves processes behind a session: one that detached itself by setsid and two forks and ignores every signal, one that is stopped. The
// session's cgroup is killed as a whole however it ends, sandboxed or not. The control is a program that is started without a sidecar.
func TestNoProcessOutlivesItsSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	for _, act := range []string{"detach", "stop"} {
		control := newScene(t)
		command := exec.Command(control.victim, act, control.inside("pid"))
		must(t, command.Start())
		pid := announced(t, control)
		if act == "detach" {
			must(t, command.Wait())
			if !harness.Alive(pid) {
				t.Fatal("control: a detached process must outlive its parent")
			}
		}
		must(t, syscall.Kill(pid, syscall.SIGKILL))
		if act == "stop" {
			_ = command.Wait() // killed just now
		}
		for ending, end := range endings {
			for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "unsandboxed": harness.Off()} {
				t.Run(act+"/"+ending+"/"+name, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					e := s.start(settings)
					line := "'" + s.victim + "' " + act + " '" + s.inside("pid") + "' & '" + s.victim + "' wait '" + s.inside("leave") + "'"
					session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
					if !session.Tracking.Guarantee {
						t.Fatalf("no guarantee: %+v", session.Tracking)
					}
					pid := announced(t, s)
					if !harness.Alive(pid) {
						t.Fatal("the process must be alive while its session is")
					}
					end(t, e, session, func() { harness.Write(t, s.inside("leave"), "") })
					if harness.Alive(pid) {
						t.Errorf("THE ATTACK WORKS: process %d is alive", pid)
					}
				})
			}
		}
	}
}

// Replaces a process by a new one in a session of its own, over and over, so that no list of processes is ever true. The cgroup is
// killed atomically.
func TestAChainOfProcessesDoesNotOutliveItsSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "unsandboxed": harness.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			e := s.start(settings)
			session := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Command: "'" + s.victim + "' respawn '" + s.inside("pid") + "' 0; exec '" + s.victim + "' wait '" + s.inside("leave") + "'",
			})
			first := announced(t, s)
			// Control: the chain runs on after its first process has ended.
			harness.Eventually(t, "the chain grows", func() bool { return announced(t, s) != first })
			session.Close(0)
			last := harness.Read(t, s.inside("pid"))
			if pid, err := strconv.Atoi(last); err == nil && harness.Alive(pid) {
				t.Errorf("THE ATTACK WORKS: process %d is alive", pid)
			}
			// A link of the chain that lived would have written another name by the time that a whole session takes.
			e.Tool("true")
			if now := harness.Read(t, s.inside("pid")); now != last {
				t.Errorf("THE ATTACK WORKS: the chain went on from %s to %s", last, now)
			}
		})
	}
}

// announced waits for the process id that a victim writes, and returns it.
func announced(t testing.TB, s *scene) int {
	t.Helper()
	pid := 0
	harness.Eventually(t, "victim writes its process id", func() bool {
		var err error
		pid, err = strconv.Atoi(harness.Read(t, s.inside("pid")))
		return err == nil
	})
	return pid
}
