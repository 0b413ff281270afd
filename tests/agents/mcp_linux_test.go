package agents

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Below an agent that is confined it says why it does not start.
func TestMCP_DoesNotStartInASession(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	inside := filepath.Join(w.Project, "sidecar")
	harness.Victim(t, "cmd/sandbox-sidecar", inside)
	command := exec.Command(harness.Binary(t), "exec", "--kind", "tool", "--", inside, "mcp")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	text, err := command.CombinedOutput()
	if err == nil || !strings.Contains(harness.Unfold(string(text)), "it runs in a sandboxed session") {
		t.Errorf("%v: %s", err, text)
	}
}

// A command finds in /tmp, on localhost and among the processes what an earlier
// one of the same connection has left, whichever tool has started that. One of
// another connection does not. Nothing outlives its connection.
func TestMCP_CommandsOfAConnectionShareASandbox(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	const serve = `exec /usr/bin/python3 -c '
import os, socket
s = socket.create_server(("127.0.0.1", 0)); open("/tmp/new", "w").write(str(s.getsockname()[1]))
os.rename("/tmp/new", "/tmp/port")
while True: s.accept()[0].sendall(b"served")'`
	const ask = `/usr/bin/python3 -c '
import socket
print(socket.create_connection(("127.0.0.1", int(open("/tmp/port").read()))).recv(9).decode())'`
	settings := harness.Defaults(harness.Sandbox{"allow_network": false})
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			wrap := func(command *exec.Cmd) {
				if machine.Wrap != nil {
					machine.Wrap(command)
				}
			}
			a, other := newAgentUnder(t, settings, wrap), newAgentUnder(t, settings, wrap)
			if machine.Namespaces {
				var started struct{ ID string }
				if _, err := a.call(t.Context(), "start", map[string]any{"command": serve}, &started); err != nil {
					t.Fatal(err)
				}
				a.run(map[string]any{"command": "until test -s /tmp/port; do :; done"})
				if got, text := a.run(map[string]any{"command": ask}); got.Output != "served\n" {
					t.Errorf("the server of start is not reached by run:\n%s", text)
				}
				if got, text := other.run(map[string]any{"command": ask}); strings.Contains(got.Output, "served") {
					harness.Breach(t, "another connection reaches the server:\n%s", text)
				}
			}
			left, text := a.run(map[string]any{"command": "sleep 1000 & echo $!"})
			if left.Background != 1 || !strings.Contains(text, "one process of it still runs") {
				t.Errorf("a command that leaves a process: %+v\n%s", left, text)
			}
			pid := strings.TrimSpace(left.Output)
			reach := map[string]any{"command": "kill -0 " + pid + " && echo reached"}
			if got, text := other.run(reach); strings.Contains(got.Output, "reached") {
				harness.Breach(t, "another connection can signal the process:\n%s", text)
			}
			if got, text := a.run(reach); got.Output != "reached\n" {
				t.Errorf("the next command cannot signal the process:\n%s", text)
			}
			number, err := strconv.Atoi(pid)
			harness.Must(t, err)
			harness.Must(t, a.session.Close())
			harness.MustEnd(t, "what was left ends with the connection", func() bool { return !harness.Alive(number) })
		})
	}
}

// The results say what a model would not expect: that a changed setting has split
// the sandbox, that all of it has ended, and that an earlier command's process was
// refused something.
func TestMCP_SaysWhatHappensToTheSandbox(t *testing.T) {
	t.Parallel()
	a := newAgent(t, harness.Defaults(nil))
	target := harness.Quote(a.OutsidePath("target"))
	left, _ := a.run(map[string]any{
		"command": "(until test -e go; do :; done; echo x >" + target + "; echo >went; sleep 1000) & true",
	})
	if left.Background != 1 {
		t.Fatalf("control: nothing was left: %+v", left)
	}
	// It goes on once it is known that the next command runs.
	var started struct{ ID string }
	if _, err := a.call(t.Context(), "start", map[string]any{"command": "until test -e went; do :; done"},
		&started); err != nil {
		t.Fatal(err)
	}
	harness.Write(t, a.ProjectPath("go"), "")
	var ended result
	text, err := a.call(t.Context(), "output", map[string]any{"id": started.ID, "wait_seconds": 60}, &ended)
	if err != nil || !strings.Contains(text, "in the background") {
		t.Errorf("a refusal of an earlier command's process: %v\n%s", err, text)
	}
	if _, text = a.run(map[string]any{"command": "echo x >" + target}); strings.Contains(text, "in the background") {
		t.Errorf("its own refusal:\n%s", text)
	}
	harness.Write(t, a.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
	harness.Eventually(t, "a warning of another sandbox", func() bool {
		_, text := a.run(map[string]any{"command": "true"})
		return strings.Contains(text, "this command has a new sandbox")
	})
	var got result
	text, err = a.call(t.Context(), "run", map[string]any{"command": "kill -9 -1"}, &got)
	// It may end the sandbox before its start is reported.
	if !strings.Contains(text, "the sandbox has ended with it") &&
		(err == nil || !strings.Contains(text, "the command may have run")) {
		t.Errorf("the end of everything: %v %+v\n%s", err, got, text)
	}
	if got, text := a.run(map[string]any{"command": "echo on"}); got.Output != "on\n" ||
		strings.Contains(text, "ended with it") {
		t.Errorf("the next command: %+v\n%s", got, text)
	}
}
