//go:build linux

package groups

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// listedSession is what a line of "ps --json" has that tests look at.
type listedSession struct {
	ID, Kind, Sandbox, Group, ProjectDir, Status string
	Shared, Joined                               bool
	Argv                                         []string
	PID, Background                              int
}

// supervisor is a process that "ps --json" lists.
type supervisor struct {
	PID        int
	By, Client string
	Sessions   []listedSession
}

// command is a command of the program in a world.
func command(t testing.TB, w *harness.World, args ...string) *exec.Cmd {
	c := exec.Command(harness.Binary(t), args...)
	c.Env, c.Dir = harness.Environ(w), w.Project
	return c
}

// ps lists what runs in a world, and returns what was said beside it. wrap changes
// the command; nil changes nothing.
func ps(t testing.TB, w *harness.World, wrap func(*exec.Cmd)) (list []supervisor, said string) {
	t.Helper()
	c := command(t, w, "ps", "--json")
	if wrap != nil {
		wrap(c)
	}
	var complaint strings.Builder
	c.Stderr = &complaint
	out, err := c.Output()
	if (err != nil) != (complaint.Len() > 0) {
		t.Fatalf("ps: %v, and it said %q", err, &complaint)
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("ps: %v: %s", err, out)
	}
	return list, complaint.String()
}

// one is the only process that was started by a command.
func one(t testing.TB, list []supervisor, by string) supervisor {
	t.Helper()
	var found []supervisor
	for _, s := range list {
		if s.By == by {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d processes by %s in %+v", len(found), by, list)
	}
	return found[0]
}

// runsUntilRead starts a command that prints a line once it runs, and ends when its
// standard input does. It is ended with the test.
func runsUntilRead(t testing.TB, c *exec.Cmd) (end func() error) {
	t.Helper()
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &harness.Buffer{}
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { _ = c.Process.Kill() })
	out.Await(t, "runs\n")
	return func() error { in.Close(); return <-ended }
}

// What runs is listed from another terminal, as long as it runs: the sessions and
// groups of an editor, and that of exec, without the secrets of its command.
func TestPs(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		w, wrap := e.World, machine.Wrap
		if wrap == nil {
			wrap = func(*exec.Cmd) {}
		}
		if list, _ := ps(t, w, wrap); len(one(t, list, "serve").Sessions) != 0 {
			t.Fatalf("before the first session: %+v", list)
		}
		run(e, "agent", "sleep 1000 & sleep 1000 &")
		s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo on; exec sleep 1000", Group: "agent"})
		s.Await("on")
		exec := command(t, w, "exec", "--sandbox", "--", "sh", "-c", "echo runs; read line; exit 0",
			"--password=hunter2")
		wrap(exec)
		end := runsUntilRead(t, exec)
		list, said := ps(t, w, wrap)
		if said != "" {
			t.Errorf("it said %q", said)
		}
		served, executed := one(t, list, "serve"), one(t, list, "exec")
		if served.Client != "test" || served.PID != e.Process() || executed.PID != exec.Process.Pid {
			t.Errorf("the processes: %+v", list)
		}
		if len(served.Sessions) != 2 || len(executed.Sessions) != 1 {
			t.Fatalf("the sessions: %+v", list)
		}
		group, member, own := served.Sessions[0], served.Sessions[1], executed.Sessions[0]
		if !group.Shared || group.Group != "agent" || group.Background != 2 || group.Argv != nil ||
			group.ProjectDir != w.Project || group.Kind != "tool" {
			t.Errorf("the group: %+v", group)
		}
		if member.ID != s.SessionID || member.Sandbox != group.ID || member.Shared || member.PID != s.PID ||
			!strings.Contains(strings.Join(member.Argv, " "), "echo on") {
			t.Errorf("its session: %+v", member)
		}
		if own.Sandbox != "" || own.Kind != "terminal" || own.Status != string(statusOf(e)) {
			t.Errorf("the session of exec: %+v", own)
		}
		shown := fmt.Sprint(own.Argv)
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, "--password=") {
			harness.Breach(t, "the command is listed as %s", shown)
		}
		people := command(t, w, "ps")
		wrap(people)
		text, err := people.CombinedOutput()
		for _, want := range []string{
			w.Project, group.ID[:8], member.ID[:8], own.ID[:8], `group "agent", in the background: 2`,
		} {
			if !strings.Contains(harness.Unfold(string(text)), want) {
				t.Errorf("ps: %v: no %q in\n%s", err, want, text)
			}
		}
		if err := end(); err != nil {
			t.Errorf("exec: %v", err)
		}
		s.Close(0)
		harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		if list, _ := ps(t, w, wrap); len(list) != 1 || len(list[0].Sessions) != 0 {
			t.Errorf("after their ends: %+v", list)
		}
	})
}

// statusOf is the status of a session of exec's kind.
func statusOf(e *harness.Editor) protocol.SandboxStatus {
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Terminal, Command: "true"})
	s.Exit()
	status := s.Sandbox.Status
	s.Close(0)
	return status
}

// A process that does not answer is named, and holds up nothing for longer than a
// second. One that was killed leaves nothing.
func TestPs_SilentAndKilled(t *testing.T) {
	t.Parallel()
	w := harness.NewWorldOutsideDefaults(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	start := func() *exec.Cmd {
		c := command(t, w, "exec", "--", "sh", "-c", "echo runs; read line")
		runsUntilRead(t, c)
		return c
	}
	good, hung := start(), start()
	if list, _ := ps(t, w, nil); len(list) != 2 {
		t.Fatalf("control: %+v", list)
	}
	harness.Stop(t, hung.Process.Pid)
	var said string
	var list []supervisor
	took := deadline.Took(os.Getpid(), func() { list, said = ps(t, w, nil) })
	if len(list) != 1 || list[0].PID != good.Process.Pid {
		t.Errorf("listed: %+v", list)
	}
	if !strings.Contains(said, fmt.Sprintf("process %d did not say", hung.Process.Pid)) {
		t.Errorf("it said %q", said)
	}
	if took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	_ = hung.Process.Signal(unix.SIGCONT)
	_ = good.Process.Signal(unix.SIGKILL)
	harness.Eventually(t, "the killed one is gone", func() bool {
		list, said = ps(t, w, nil)
		return len(list) == 1 && said == "" && list[0].PID == hung.Process.Pid
	})
	// One that died while it was asked is removed by the next ps.
	harness.Eventually(t, "its socket is removed", func() bool {
		ps(t, w, nil)
		return len(sockets(t, w)) == 1
	})
	if left := sockets(t, w); len(left) != 1 {
		t.Errorf("sockets are left: %q", left)
	}
}

// sockets are those of a world on which processes answer what they run.
func sockets(t testing.TB, w *harness.World) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(w.Home, ".local/state/sandbox-sidecar/run/*/control"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// askWhatRuns asks at a socket what runs. Its path may be too long, so a link leads
// to its directory. A session gets no answer by a path through /proc/self/fd,
// whatever it may reach.
const askWhatRuns = `import os, socket, sys
link = "to-%d" % os.getpid()
os.symlink(os.path.dirname(sys.argv[1]), link)
s = socket.socket(socket.AF_UNIX)
s.connect(link + "/control")
s.sendall(b'{"version":2,"list":{}}\n')
print("answered", len(s.recv(100)) > 0)
`

// A session cannot reach the socket, even where the settings grant the home, nor
// does it inherit one.
func TestPs_IsOutOfReach(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	harness.RequirePrograms(t, "python3")
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	script := filepath.Join(w.Project, "ask.py")
	harness.Write(t, script, askWhatRuns)
	found := sockets(t, w)
	if len(found) != 1 {
		t.Fatalf("sockets: %q", found)
	}
	asking := func(args ...string) string {
		c := exec.Command("python3", script, found[0])
		if len(args) > 0 {
			c = command(t, w, append(args, "python3", script, found[0])...)
		}
		c.Env, c.Dir = append(harness.Environ(w), "SSH_AUTH_SOCK="+found[0]), w.Project
		out, _ := c.CombinedOutput()
		return string(out)
	}
	if out := asking(); out != "answered True\n" {
		t.Fatalf("control: %s", out)
	}
	attack := func(where string) {
		t.Helper()
		if out := asking("exec", "--sandbox", "--"); strings.Contains(out, "answered True") {
			harness.Breach(t, "%s: a session of exec: %s", where, out)
		}
		line := "python3 " + script + " '" + found[0] + "'"
		for _, group := range []string{"", "agent"} {
			if out, _ := run(e, group, line); strings.Contains(out, "answered True") {
				harness.Breach(t, "%s: a session in group %q: %s", where, group, out)
			}
		}
	}
	attack("with the defaults")
	harness.Write(t, w.UserSettings(), settings(harness.Sandbox{"additional_read_write_paths": []string{w.Home}}))
	attack("where the home is granted")
	harness.Write(t, w.UserSettings(), settings(harness.Sandbox{
		"additional_read_write_paths": []string{w.Home}, "allowed_unix_sockets": []string{found[0]},
	}))
	attack("where the socket and the home are granted")
	harness.Write(t, w.UserSettings(), settings(harness.Sandbox{"allowed_unix_sockets": []string{found[0]}}))
	attack("where the socket is granted")
	harness.Write(t, w.UserSettings(), settings(harness.Sandbox{
		"allowed_unix_sockets": []string{"$SSH_AUTH_SOCK"}, "allowed_env_vars": []string{"+SSH_AUTH_SOCK"},
	}))
	attack("where a variable names the socket")
	for _, group := range []string{"", "agent"} {
		if out, _ := run(e, group, "readlink /proc/self/fd/*"); strings.Contains(out, "socket:") {
			harness.Breach(t, "a session in group %q has a socket: %s", group, out)
		}
	}
	c := command(t, w, "exec", "--sandbox", "--", "sh", "-c", "readlink /proc/self/fd/*")
	if out, _ := c.Output(); strings.Contains(string(out), "socket:") {
		harness.Breach(t, "a session of exec has a socket: %s", out)
	}
}
