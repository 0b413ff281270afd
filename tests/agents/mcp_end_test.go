//go:build unix

package agents

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// plainAgent speaks MCP without a library, so that it can end in any way.
type plainAgent struct {
	t      *testing.T
	server *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	lines  *bufio.Scanner
}

// converse starts a server by a command, and opens the conversation.
func converse(t *testing.T, command *exec.Cmd) *plainAgent {
	t.Helper()
	a := &plainAgent{t: t, server: command}
	var err error
	a.in, err = command.StdinPipe()
	harness.Must(t, err)
	a.out, err = command.StdoutPipe()
	harness.Must(t, err)
	command.Stderr = t.Output()
	harness.Must(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	a.lines = bufio.NewScanner(a.out)
	a.lines.Buffer(nil, 1<<20)
	a.ask(1, "initialize",
		`{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}`)
	a.send(`{"jsonrpc": "2.0", "method": "notifications/initialized"}`)
	return a
}

func (a *plainAgent) send(line string) {
	a.t.Helper()
	_, err := io.WriteString(a.in, line+"\n")
	harness.Must(a.t, err)
}

// ask sends a request, and returns the line of its answer.
func (a *plainAgent) ask(id int, method, params string) string {
	a.t.Helper()
	a.send(fmt.Sprintf(`{"jsonrpc": "2.0", "id": %d, "method": %q, "params": %s}`, id, method, params))
	for a.lines.Scan() {
		if strings.Contains(a.lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
			return a.lines.Text()
		}
	}
	a.t.Fatalf("%s: no answer: %v", method, a.lines.Err())
	return ""
}

// end is the exit status of the server; -1 if a signal has ended it.
func (a *plainAgent) end() int {
	err := a.server.Wait()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		a.t.Fatal(err)
	}
	return a.server.ProcessState.ExitCode()
}

// lastNumber is that of commands that tests look for among all processes.
var lastNumber atomic.Int64

// However the conversation ends, no command goes on. The controls are the
// processes that run before.
func TestMCP_EveryEndEndsAllCommands(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	harness.Procfs(t)
	for name, test := range map[string]struct {
		end    func(a *plainAgent, sidecar int) error
		status int
	}{
		"end of input": {func(a *plainAgent, _ int) error { return a.in.Close() }, 0},
		"nobody reads": {func(a *plainAgent, _ int) error { return a.out.Close() }, 0},
		"SIGTERM": {func(a *plainAgent, _ int) error {
			return a.server.Process.Signal(syscall.SIGTERM)
		}, 143},
		"SIGKILL": {func(a *plainAgent, _ int) error { return a.server.Process.Kill() }, -1},
		"the sidecar's death": {func(_ *plainAgent, sidecar int) error {
			return syscall.Kill(sidecar, syscall.SIGKILL)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			harness.Write(t, w.UserSettings(), harness.Defaults(nil))
			server := exec.Command(harness.BinaryWithMCP(t), "mcp")
			server.Dir, server.Env = w.Project, harness.Environ(w)
			a := converse(t, server)
			seconds := fmt.Sprintf("9%d%d", os.Getpid(), lastNumber.Add(1))
			// The first one leaves the leader's session.
			line := fmt.Sprintf("setsid sleep %s & exec sleep %s", seconds, seconds)
			answer := a.ask(2, "tools/call", fmt.Sprintf(`{"name": "start", "arguments": {"command": %q}}`, line))
			if !strings.Contains(answer, "started command-1") {
				t.Fatal(answer)
			}
			harness.Eventually(t, "two commands run", func() bool {
				return len(harness.Find("sleep\x00"+seconds)) == 2
			})
			sidecar := childOf(t, server.Process.Pid)
			harness.Must(t, test.end(a, sidecar))
			if got := a.end(); got != test.status {
				t.Errorf("exit status %d, want %d", got, test.status)
			}
			harness.Eventually(t, "no command runs", func() bool { return len(harness.Find(seconds)) == 0 })
			harness.Eventually(t, "no sidecar runs", func() bool { return !harness.Alive(sidecar) })
		})
	}
}

// childOf is the child of a process that serves the protocol.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	for _, pid := range harness.Find("\x00serve\x00--sandbox\x00") {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			return pid
		}
	}
	t.Fatal("the server has started no sidecar")
	return 0
}

// A line that is no message ends neither the conversation nor what runs.
func TestMCP_GarbageEndsNothing(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	server := exec.Command(harness.BinaryWithMCP(t), "mcp")
	server.Dir, server.Env = w.Project, harness.Environ(w)
	a := converse(t, server)
	a.ask(2, "tools/call", `{"name": "start", "arguments": {"command": "sleep 1000"}}`)
	for i, line := range []string{
		"hello", "{", `{"jsonrpc": "2.0"}`, "[]", "[1]", "5", "null", "\x00\xff", strings.Repeat("[", 20_000),
		`{"jsonrpc": "2.0", "id": 1, "method": 7}`, `{"jsonrpc": "2.0", "id": {}, "method": "ping"}`,
		`{"jsonrpc": "2.0", "id": 5, "method": "ping"}{}`, `[{"jsonrpc": "2.0", "id": 6, "method": "ping"}]`,
		strings.Repeat("x", 17<<20),
	} {
		a.send(line)
		answer := a.ask(100+i, "tools/call", `{"name": "output", "arguments": {"id": "command-1"}}`)
		if !strings.Contains(answer, `"ended":false`) {
			t.Fatalf("after %.60q: %s", line, answer)
		}
	}
}
