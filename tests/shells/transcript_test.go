//go:build linux

package shells

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// actor is an agent. It runs the lines of the file "commands", one after the other,
// writes the file "transcript", and waits for its end. Its first argument is the way
// in which it runs a line: "shell" by a shell, "mcp" by the tool "run" of a server,
// "tools" by tools of an editor that it is itself. The others are that program.
const actor = `
import base64, json, os, signal, subprocess, sys

way, argv = sys.argv[1], sys.argv[2:]
host, last = None, 0

def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    if way == "mcp": body += b"\n"
    else: body = b"Content-Length: %d\r\n\r\n" % len(body) + body
    host.stdin.write(body)
    host.stdin.flush()

def receive():
    if way == "mcp": return json.loads(host.stdout.readline())
    length = 0
    while line := host.stdout.readline().strip():
        name, value = line.split(b":")
        if name.lower() == b"content-length": length = int(value)
    return json.loads(host.stdout.read(length))

def call(method, params):
    global last
    last += 1
    send({"id": last, "method": method, "params": params})
    while True:
        message = receive()
        if message.get("id") == last and "method" not in message:
            if "result" not in message: sys.exit(str(message))
            return message["result"]

def by_shell(line):
    done = subprocess.run(argv + ["-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    return done.stdout, done.returncode if done.returncode >= 0 else 128 - done.returncode

def by_mcp(line):
    got = call("tools/call", {"name": "run", "arguments": {"command": line}})["structuredContent"]
    return got.get("output", "").encode(), got.get("exit_code", 0)

def by_tools(line):
    tool = {"kind": "tool", "group": "agent", "pipe": True, "command": line, "cwd": os.getcwd()}
    session, out = call("terminal/spawn", tool)["sessionId"], b""
    while True:
        message = receive()
        method, params = message.get("method"), message.get("params", {})
        if params.get("sessionId") != session: continue
        if method == "terminal/output": out += base64.b64decode(params["data"])
        if method != "terminal/exited": continue
        call("terminal/close", {"sessionId": session})
        if params.get("signal"): return out, 128 + getattr(signal, params["signal"])
        return out, params["exitCode"]

if way != "shell":
    host = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    version = "2025-06-18" if way == "mcp" else 1
    call("initialize", {"protocolVersion": version, "capabilities": {},
        "clientInfo": {"name": "actor", "version": "1"}})
    send({"method": "notifications/initialized" if way == "mcp" else "initialized", "params": {}})
run = {"shell": by_shell, "mcp": by_mcp, "tools": by_tools}[way]
calls = []
for line in json.load(open("commands")):
    out, status = run(line)
    calls.append({"line": line, "out": out.decode(), "status": status})
with open("transcript.part", "w") as file: json.dump({"agent": os.getpid(), "calls": calls}, file)
os.rename("transcript.part", "transcript")
signal.pause()
`

// transcript is what the actor writes.
type transcript struct {
	Agent int
	Calls []call
}

// call is a command of an agent, and what came of it.
type call struct {
	Line   string `json:"line"`
	Out    string `json:"out"`
	Status int    `json:"status"`
}

// roads are the ways into a sandbox that the commands of one agent share. Each
// starts the actor.
var roads = map[string]func(w *world) *exec.Cmd{
	"link": func(w *world) *exec.Cmd {
		return w.command("/usr/bin/python3", "-c", actor, "shell", w.link("bash"))
	},
	"mcp": func(w *world) *exec.Cmd {
		return w.command("/usr/bin/python3", "-c", actor, "mcp", harness.BinaryWithMCP(w.t), "mcp")
	},
	"tools of an editor": func(w *world) *exec.Cmd {
		return w.command("/usr/bin/python3", "-c", actor, "tools", harness.Binary(w.t), "serve")
	},
	"acp": func(w *world) *exec.Cmd {
		return w.command(harness.Binary(w.t), "acp", "--", "/usr/bin/python3", "-c", actor, "shell", "/bin/bash")
	},
	"exec": func(w *world) *exec.Cmd {
		return w.command(harness.Binary(w.t), "exec", "--kind", "tool", "--", "/usr/bin/python3", "-c", actor,
			"shell", "/bin/bash")
	},
}

// script is what the actor runs, and what must come of it. Its commands leave files
// in a directory, and the ids of processes in the file "pids" of the project.
func script(project, dir string, server bool) []call {
	calls := []call{
		{Line: "echo mine >DIR/file"},
		{Line: `sh -c 'trap "echo got >DIR/got; exit" TERM; echo >DIR/ready; while :; do sleep 0.05; done' ` +
			">/dev/null 2>&1 & echo $! >DIR/pid; echo $! >>pids; " +
			"until test -e DIR/ready; do kill -0 $! || exit 9; done"},
		{
			Line: "cat DIR/file; ls DIR/none", Out: "mine\nls: cannot access 'DIR/none': No such file or directory\n",
			Status: 2,
		},
	}
	if server {
		calls = append(calls, call{Line: strings.ReplaceAll(serve, "&1 &", "&1 & echo $! >>pids;")},
			call{Line: ask, Out: "served\n"})
	}
	calls = append(calls,
		call{
			Line: "kill $(cat DIR/pid) || exit 9; until test -s DIR/got; do sleep 0.05; done; cat DIR/got",
			Out:  "got\n",
		},
		call{Line: "echo out; echo err >&2; exit 7", Out: "out\nerr\n", Status: 7},
		call{Line: "kill -TERM $$", Status: 128 + int(unix.SIGTERM)},
		call{Line: "cd /; pwd", Out: "/\n"},
		call{Line: "pwd; test -t 1 || echo no terminal", Out: project + "\nno terminal\n"},
		call{Line: "sleep 1000 >/dev/null 2>&1 & echo $! >>pids; sh -c 'exit 3'", Status: 3},
	)
	for i := range calls {
		calls[i].Line = strings.ReplaceAll(calls[i].Line, "DIR", dir)
		calls[i].Out = strings.ReplaceAll(calls[i].Out, "DIR", dir)
	}
	return calls
}

// ours are the lines that the program itself says, some of which are folded.
var ours = regexp.MustCompile(`(?m)^sandbox-sidecar: .*\n( +.*\n)*`)

// withoutOurs is what a command has printed, without what the program says of it.
func withoutOurs(text string) string { return ours.ReplaceAllString(text, "") }

// place is a machine, which may lack something, with a setting of the network.
type place struct {
	name, network string
	machine       func(t *testing.T) harness.Machine
}

// without is a machine with namespaces, if this one has any, that lacks something
// else.
func without(wrap func(testing.TB) func(*exec.Cmd)) func(*testing.T) harness.Machine {
	return func(t *testing.T) harness.Machine {
		t.Helper()
		return harness.Machine{Namespaces: harness.Namespaces(t), Wrap: wrap(t)}
	}
}

func places() []place {
	this := func(t *testing.T) harness.Machine { return harness.Machine{Namespaces: harness.Namespaces(t)} }
	return []place{
		{"this machine", "off", this},
		{"this machine", "by host", this},
		{"this machine", "on", this},
		{"without namespaces", "on", func(t *testing.T) harness.Machine {
			return harness.Machine{Wrap: harness.WithoutNamespaces(t)}
		}},
		{"without cgroups", "off", without(harness.WithoutCgroups)},
		{"without pidfd", "off", without(harness.WithoutPidfd)},
	}
}

// One agent's commands have the same transcript by each road into a sandbox: what
// one leaves is there for the next. Its death by SIGKILL leaves nothing.
func TestTogether_OneTranscriptByEachRoad(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, place := range places() {
		for name, start := range roads {
			t.Run(fmt.Sprintf("%s, network %s, %s", place.name, place.network, name), func(t *testing.T) {
				t.Parallel()
				machine := place.machine(t)
				network := harness.Sandbox{"allow_network": place.network == "on"}
				if place.network == "by host" {
					harness.Require(t, "network_hosts")
					network["allowed_hosts"] = []string{fmt.Sprintf("localhost:%d", harness.FreePort(t))}
				}
				w := newWorld(t, harness.Defaults(network))
				// Without namespaces /tmp is shared with all programs of the
				// machine, and no session has a localhost of its own.
				dir := "/tmp"
				if !machine.Namespaces {
					dir = w.ProjectPath("shared")
					harness.MakeDir(t, dir)
				}
				command := start(w)
				if machine.Wrap != nil {
					machine.Wrap(command)
				}
				w.mustTranscribe(command, script(w.Project, dir, machine.Namespaces))
			})
		}
	}
}

// mustTranscribe has an agent run calls, compares what came of them, kills the
// agent, and waits until nothing of it is left.
func (w *world) mustTranscribe(command *exec.Cmd, calls []call) {
	t := w.t
	t.Helper()
	var lines []string
	for _, call := range calls {
		lines = append(lines, call.Line)
	}
	text, err := json.Marshal(lines)
	harness.Must(t, err)
	harness.Write(t, w.ProjectPath("commands"), string(text))
	said := &harness.Buffer{}
	command.Stdout, command.Stderr, command.WaitDelay = said, said, harness.Timeout
	_, err = command.StdinPipe() // acp ends with its input
	harness.Must(t, err)
	harness.Must(t, command.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // the agent is killed
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	written := ""
	harness.Eventually(t, "the agent has run its commands", func() bool {
		select {
		case <-ended:
			t.Fatalf("the agent has ended: %s", said)
		default:
		}
		written = harness.Read(t, w.ProjectPath("transcript"))
		return written != ""
	})
	var got transcript
	harness.Must(t, json.Unmarshal([]byte(written), &got))
	if len(got.Calls) != len(calls) {
		t.Fatalf("%d calls of %d: %+v", len(got.Calls), len(calls), got.Calls)
	}
	for i, want := range calls {
		if call := got.Calls[i]; withoutOurs(call.Out) != want.Out || call.Status != want.Status {
			t.Errorf("%s: status %d, want %d, and %q, want %q", want.Line, call.Status, want.Status, call.Out, want.Out)
		}
	}
	w.mustLeaveNothing(got.Agent, command.Process.Pid)
}

// mustLeaveNothing kills an agent, and waits for the end of all processes that it
// has started, of those that keep its sandbox, and of those that its commands
// have left. The controls are those that run before. started is the process from
// which the test has started the agent.
func (w *world) mustLeaveNothing(agent, started int) {
	t := w.t
	t.Helper()
	var left []int
	for _, text := range strings.Fields(harness.Read(t, w.ProjectPath("pids"))) {
		left = append(left, pidOf(t, text))
	}
	if len(left) == 0 || !harness.Alive(left[len(left)-1]) {
		t.Fatalf("control: of the processes %v the last one has ended", left)
	}
	before := below(t, append(append([]int{agent, started}, w.keepersOf(agent)...), left...))
	harness.Must(t, unix.Kill(agent, unix.SIGKILL))
	var survivors []int
	if !harness.Within(func() bool {
		survivors = survivors[:0]
		now := processes(t)
		for pid, p := range before {
			if now[pid].birth == p.birth {
				survivors = append(survivors, pid)
			}
		}
		return len(survivors) == 0
	}) {
		harness.Breach(t, "processes %v outlive the agent that was killed", survivors)
	}
	harness.MustEnd(t, "no watchdog is left", func() bool { return len(harness.Watchdogs(w.World)) == 0 })
	w.mustBeQuiet()
}

// keepersOf are the processes that keep the sandboxes of an agent.
func (w *world) keepersOf(agent int) []int {
	return harness.Find(fmt.Sprintf("\x00keep\x00%d\x00", agent))
}

// process is what tells a process from others with its number.
type process struct {
	parent int
	birth  string
}

// processes are all that run now, without those that only wait to be reaped.
func processes(t *testing.T) map[int]process {
	t.Helper()
	all := map[int]process{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	harness.Must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name in the second field may hold anything.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		harness.Must(t, err)
		parent, err := strconv.Atoi(fields[1])
		harness.Must(t, err)
		all[pid] = process{parent, fields[19]}
	}
	return all
}

// below are some processes that run, with all that descend from them.
func below(t *testing.T, roots []int) map[int]process {
	t.Helper()
	all, found := processes(t), map[int]process{}
	for pid := range all {
		for at := pid; at > 1; at = all[at].parent {
			if slices.Contains(roots, at) {
				found[pid] = all[pid]
				break
			}
		}
	}
	return found
}
