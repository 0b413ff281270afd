//go:build linux

package sockets

import (
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Kills the supervisor and its keepers, and the watchdog is held so that it cannot end the session: what the session could reach only through the sidecar it
// cannot reach any more.
func TestASupervisorsDeathOpensNothing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	s := newScene(t, harness.Machine{})
	server := listen(t, s.at("out"))
	e := s.start(defaults())
	// A leader dies with its keeper; what has left its terminal does not.
	const loop = `trap '' HUP; while :; do "$1" hear "$2" >>said; done`
	name := "loop-" + uuid.NewString()
	e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: "/bin/sh", Args: []string{"-c", `setsid sh -c "$@" & wait`, "sh", loop, name, s.victim, s.at("out")},
	})
	harness.Eventually(t, "the session tries", func() bool { return contains(harness.Read(t, s.Project+"/said"), "refused: EACCES") })
	watchdogs := harness.Watchdogs(s.World)
	if len(watchdogs) != 1 {
		t.Fatalf("%d watchdogs", len(watchdogs))
	}
	t.Cleanup(func() { _ = unix.Kill(watchdogs[0], unix.SIGCONT) })
	keepers := harness.Keepers(e.Process())
	for _, pid := range []int{e.Process(), watchdogs[0]} {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range append(keepers, e.Process()) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, "the session is told that there is no such call", func() bool {
		return contains(harness.Read(t, s.Project+"/said"), "refused: ENOSYS")
	})
	if got := server.visits.Load(); got != 0 {
		t.Errorf("THE ATTACK WORKS: %d visits", got)
	}
	if err := unix.Kill(watchdogs[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the watchdog ends the session", func() bool { return len(harness.Find(name)) == 0 })
}

// Supervises itself: there can be one listener for a chain of filters, and that is the sidecar's. A program that needs one of its own is told
// that it is busy; it cannot take it over.
func TestASessionCannotSuperviseItself(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	if control, _ := newScene(t, harness.Machine{}).tool(nil, "listener"); !contains(control, "listening") {
		t.Fatalf("control: without a sandbox it must work: %s", control)
	}
	s := newScene(t, harness.Machine{})
	output, _ := s.tool(defaults(), "listener")
	reply := s.start(defaults()).Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"})
	reply.Exit()
	if byLandlock := contains(reply.Sandbox.Protections["unix_sockets"].Mechanism, "landlock"); !byLandlock && !contains(output, "refused: EBUSY") {
		t.Errorf("want EBUSY: %s", output)
	}
}

// tool lets the victim act in a session of its own.
func (s *scene) tool(settings harness.Sandbox, act string) (output string, status int) {
	s.t.Helper()
	return s.start(settings).Tool(quote(s.victim) + " " + act)
}
