//go:build linux

package sockets

import (
	"os"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Kills the supervisor and its subreapers, while the watchdog is stopped so
// that it cannot end the session. The session cannot reach what it could reach
// only through the sidecar.
func TestASupervisorsDeathOpensNothing(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	s := newScene(t, harness.Machine{})
	server := listen(t, s.at("out"))
	e := s.start(defaults())
	// A leader dies with its subreaper; a process that has left its terminal
	// does not. This one starts and opens nothing later, which may need a
	// supervisor too. It tries again with every line that comes by a pipe.
	name := "again-" + uuid.NewString()
	t.Cleanup(func() {
		for _, pid := range harness.Find(name) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	if err := unix.Mkfifo(s.Project+"/lines", 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := os.OpenFile(s.Project+"/lines", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: "/bin/sh",
		Args: []string{
			"-c", `trap '' HUP; setsid "$0" again "$1" "$2" <>lines >>said & wait`, s.Victim, s.at("out"), name,
		},
	})
	says := func(words string) func() bool {
		return func() bool {
			_, err := lines.WriteString("again\n")
			return err == nil && contains(harness.Read(t, s.Project+"/said"), words)
		}
	}
	harness.Eventually(t, "the session tries", says("refused: EACCES"))
	watchdogs := harness.Watchdogs(s.World)
	if len(watchdogs) != 1 {
		t.Fatalf("%d watchdogs", len(watchdogs))
	}
	t.Cleanup(func() { _ = unix.Kill(watchdogs[0], unix.SIGCONT) })
	subreapers := harness.Subreapers(e.Process())
	for _, pid := range []int{e.Process(), watchdogs[0]} {
		harness.Stop(t, pid)
	}
	for _, pid := range append(subreapers, e.Process()) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	// Without a cgroup, its domain killer may kill it before it can report.
	refused := says("refused: ENOSYS")
	harness.Eventually(t, "the session gets ENOSYS, or has ended with its subreaper", func() bool {
		return refused() || len(subreapers) > 0 && len(harness.Find(name)) == 0
	})
	if got := server.contacts.Load(); got != 0 {
		harness.Breach(t, "THE ATTACK WORKS: %d contacts", got)
	}
	if err := unix.Kill(watchdogs[0], unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if len(subreapers) > 0 {
		return // without a subreaper nothing knows the processes that have left its session
	}
	harness.Eventually(t, "the watchdog ends the session", func() bool { return len(harness.Find(name)) == 0 })
}

// Supervises itself. A chain of filters can have one listener, and that is the
// sidecar's. A program that needs one of its own gets EBUSY; it cannot take
// over the sidecar's.
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
	if byLandlock := contains(reply.Sandbox.Protections["unix_sockets"].Mechanism, "landlock"); !byLandlock &&
		!contains(output, "refused: EBUSY") {
		t.Errorf("want EBUSY: %s", output)
	}
}

// tool runs the victim in a session of its own.
func (s *scene) tool(settings harness.Sandbox, action string) (output string, status int) {
	s.T.Helper()
	return s.start(settings).Tool(harness.Quote(s.Victim) + " " + action)
}
