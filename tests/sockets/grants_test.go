//go:build linux

package sockets

import (
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Moves another daemon's socket, in one session, to the path of a granted one,
// for a later session to be granted it. What counts is the path at which a
// daemon has bound its socket. The reply of the later session says that the
// grant has no effect.
func TestASocketThatWasMovedIsNotGranted(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	for _, machine := range harness.Machines(t) {
		s := newScene(t, machine)
		agent, other := listen(t, s.at("agent")), listen(t, s.at("other"))
		e := s.start(harness.Sandbox{"allowed_unix_sockets": []string{s.at("agent")}})
		hear := harness.Quote(s.Victim) + " hear " + harness.Quote(s.at("agent"))
		if output, _ := e.Tool(hear); !contains(output, "outside") || agent.contacts.Load() != 1 {
			t.Errorf("control: what is granted must be reached: %s", output)
		}
		running := e.Spawn(protocol.SpawnParams{Command: s.Victim, Args: []string{"again", s.at("agent")}})
		running.Await(`outside\s+ready`)
		if output, status := e.Tool("mv " + harness.Quote(s.at("other")) + " " +
			harness.Quote(s.at("agent"))); status != 0 {
			t.Fatal(output)
		}
		running.Type("\n")
		running.Await("refused: EACCES")
		later := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: hear})
		later.Exit()
		if output := later.Output(); !contains(output, "refused: E") || other.contacts.Load() != 0 {
			harness.Breach(t, "%s: THE ATTACK WORKS: %s", machine.Name, output)
		}
		if warnings := strings.Join(later.Sandbox.Warnings, "\n"); !contains(warnings, s.at("agent")) {
			t.Errorf("%s: nothing is said of it: %q", machine.Name, warnings)
		}
	}
}

// Variables that name refused sockets do not arrive, and the reply lists them.
// Variables of granted sockets arrive.
func TestVariablesOfRefusedSocketsDoNotArrive(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t, harness.Machine{})
	listen(t, s.at("agent"))
	env := []string{
		"SSH_AUTH_SOCK=" + s.at("agent"), "DBUS_SESSION_BUS_ADDRESS=unix:path=" + s.at("bus"), "TMUX=" + s.at("tmux") +
			",1,0",
		"DISPLAY=:99", "NVIM=" + s.at("nvim"), "DOCKER_HOST=tcp://127.0.0.1:9",
	}
	allowed := []string{"PATH", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "TMUX", "DISPLAY", "NVIM", "DOCKER_HOST"}
	arrived := func(sockets ...string) (printed string, dropped []string) {
		e := s.start(harness.Sandbox{"allowed_env_vars": allowed, "allowed_unix_sockets": sockets}, env...)
		session := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "/usr/bin/env"})
		session.Exit()
		return session.Output(), session.Environment.Dropped
	}
	arrivedEnv, dropped := arrived()
	for _, name := range []string{"SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "TMUX", "DISPLAY", "NVIM"} {
		if contains(arrivedEnv, name+"=") || !contains(strings.Join(dropped, " "), name) {
			t.Errorf("%s: dropped are %q, and these arrived:\n%s", name, dropped, arrivedEnv)
		}
	}
	if !contains(arrivedEnv, "DOCKER_HOST=tcp") {
		t.Errorf("a variable that names no Unix socket did not arrive:\n%s", arrivedEnv)
	}
	arrivedEnv, dropped = arrived(s.at("agent"), "abstract:/tmp/.X11-unix/X99")
	for _, name := range []string{"SSH_AUTH_SOCK", "DISPLAY"} {
		if !contains(arrivedEnv, name+"=") || contains(strings.Join(dropped, " "), name) {
			t.Errorf("%s is granted: dropped are %q, and these arrived:\n%s", name, dropped, arrivedEnv)
		}
	}
	control := harness.Start(t, s.World, harness.Options{Settings: harness.Off(), Env: env})
	if output, _ := control.Tool("env"); !contains(output, "TMUX=") {
		t.Errorf("control: without a sandbox everything arrives:\n%s", output)
	}
}

// Another session of the same sidecar is outside: it cannot reach a session's
// own sockets.
func TestSessionsDoNotReachEachOther(t *testing.T) {
	t.Parallel()
	harness.Require(t, "unix_sockets")
	need(t, "python3")
	for _, settings := range []harness.Sandbox{nil, defaults()} {
		s := newScene(t, harness.Machine{})
		e := s.start(settings)
		script := `import socket; s = socket.socket(1); s.bind("` + s.at("own") + `"); s.listen()
print("listens", flush=True)
while True: s.accept()[0].send(b"the other session")`
		harness.Write(t, s.Project+"/server.py", script)
		server := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "python3 server.py"})
		server.Await("listens")
		output, _ := e.Tool(harness.Quote(s.Victim) + " hear " + harness.Quote(s.at("own")))
		if reached := contains(output, "the other session"); reached != (settings == nil) {
			t.Errorf("sandboxed %t: %s", settings != nil, output)
		}
		server.Close(0)
		if err := os.Remove(s.at("own")); err != nil {
			t.Error(err)
		}
	}
}
