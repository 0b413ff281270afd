//go:build linux

package shells

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// keeper is the process that keeps the only sandbox of links in the world.
func (w *world) keeper() (pid int) {
	w.t.Helper()
	harness.Eventually(w.t, "one process keeps a sandbox", func() bool {
		out, _ := w.command(harness.Binary(w.t), "ps", "--json").Output() // it fails if one has just been killed
		var list []struct {
			PID int
			By  string
		}
		if json.Unmarshal(out, &list) != nil || len(list) != 1 || list[0].By != "shell" {
			return false
		}
		pid = list[0].PID
		return true
	})
	return pid
}

// kept is where the commands of the world's only agent meet: the socket of the
// keeper, and the sandbox. place is the file.
func (w *world) kept() (place, socket, sandbox string) {
	w.t.Helper()
	found, err := filepath.Glob(w.HomePath(".local/state/sandbox-sidecar/run/shared/*[0-9a-f]"))
	harness.Must(w.t, err)
	if len(found) != 1 {
		w.t.Fatalf("commands meet at %q", found)
	}
	var kept struct{ Socket, Sandbox string }
	harness.Must(w.t, json.Unmarshal([]byte(harness.Read(w.t, found[0])), &kept))
	return found[0], kept.Socket, kept.Sandbox
}

// Whatever ends or stops the init ends the sandbox with all that runs there, and the
// link says so. The command runs once: it is not tried again in another sandbox. The
// agent's next command has a new one.
func TestTogether_EndsWithItsInit(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	for name, line := range map[string]string{
		"kill": "kill -9 $PPID", "stop": "kill -STOP $PPID", "kill all": "kill -9 -1",
		"signal of the C library": "kill -34 $PPID",
		"kill a thread":           "./victim kill-thread $PPID", "kill by a descriptor": "./victim kill-pidfd $PPID",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			harness.Victim(t, "tests/victim", w.ProjectPath("victim"))
			a := w.agent()
			pids := strings.Fields(a.must("sleep 1000 >/dev/null 2>&1 & echo $! $PPID"))
			if len(pids) != 2 || !harness.Alive(pidOf(t, pids[0])) {
				t.Fatalf("control: processes %q", pids)
			}
			out, status := a.run("echo x >>ran; " + line + " || exit 9; sleep 1000")
			if said := harness.Unfold(out); status != 1 ||
				!strings.Contains(said, "the sandbox has ended") && !strings.Contains(said, "may have run") {
				t.Errorf("status %d: %s", status, out)
			}
			if ran := harness.Read(t, w.ProjectPath("ran")); ran != "x\n" {
				harness.Breach(t, "the command ran %d times", strings.Count(ran, "x"))
			}
			for _, text := range pids {
				pid := pidOf(t, text)
				harness.MustEnd(t, fmt.Sprintf("process %d ends with the sandbox", pid), func() bool {
					return !harness.Alive(pid)
				})
			}
			if init := a.must("echo $PPID"); init == pids[1] {
				t.Errorf("the next command has the init %s, as before", init)
			}
			a.kill()
			w.mustBeQuiet()
		})
	}
}

// If the keeper is killed, everything in its sandbox ends, and the link of a command
// that ran says so. The agent's next command has a new sandbox.
func TestTogether_EndsWithItsKeeper(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	left := pidOf(t, a.must("sleep 1000 >/dev/null 2>&1 & echo $!"))
	type result struct {
		out    string
		status int
	}
	ended := make(chan result, 1)
	go func() {
		out, status := a.run("echo x >>ran; exec sleep 1000")
		ended <- result{out, status}
	}()
	harness.Eventually(t, "a command runs", func() bool { return harness.Read(t, w.ProjectPath("ran")) != "" })
	keeper := w.keeper()
	harness.Must(t, unix.Kill(keeper, unix.SIGKILL))
	r := <-ended
	if r.status != 1 || !strings.Contains(harness.Unfold(r.out), "the sandbox has ended") {
		t.Errorf("the command that ran: status %d: %s", r.status, r.out)
	}
	harness.MustEnd(t, "what was left ends with the keeper", func() bool { return !harness.Alive(left) })
	a.must("true")
	if next := w.keeper(); next == keeper {
		t.Errorf("process %d keeps the next sandbox, too", next)
	}
	if ran := harness.Read(t, w.ProjectPath("ran")); ran != "x\n" {
		harness.Breach(t, "the command ran %d times", strings.Count(ran, "x"))
	}
	a.kill()
	w.mustBeQuiet()
}

// attacks are command lines against the process $target. One that has an effect
// prints "works".
var attacks = map[string]string{
	"kill": "kill -9 $target", "stop": "kill -STOP $target", "terminate": "kill -TERM $target",
	"kill a thread": "./victim kill-thread $target", "kill by a descriptor": "./victim kill-pidfd $target",
	"trace": "./victim ptrace $target", "memory": "head -c 1 /proc/$target/mem >/dev/null",
	"descriptors": "readlink /proc/$target/fd/0", "environment": "cat /proc/$target/environ >/dev/null",
	"files":     "prlimit --pid $target --nofile=3:3",
	"processes": "prlimit --pid $target --nproc=1:1", "priority": "renice -n 19 -p $target",
	"processors": "taskset -p 1 $target",
}

// bySignal are the attacks that are tried on a process of the sandbox, as controls.
// Those of the others are in tests/groups.
var bySignal = []string{"kill", "stop", "terminate", "kill a thread", "kill by a descriptor"}

// No command reaches the keeper or what helps it: it kills, stops and traces none of
// them, and sets no limit of theirs.
func TestTogether_TheKeeperIsOutOfReach(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals", "syscalls")
	for _, place := range []place{
		{"this machine", "off", func(t *testing.T) harness.Machine { return harness.Machine{} }},
		{"without cgroups", "off", without(harness.WithoutCgroups)},
	} {
		t.Run(place.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			harness.Victim(t, "tests/victim", w.ProjectPath("victim"))
			a := w.agentUnder(place.machine(t).Wrap)
			init := a.must("echo $PPID")
			keeper := w.keeper()
			targets := append([]int{keeper}, harness.Watchdogs(w.World)...)
			if parent := processes(t)[pidOf(t, init)].parent; parent != keeper { // a subreaper
				targets = append(append(targets, parent), harness.DomainKillers(parent)...)
			}
			for name, attack := range attacks {
				if slices.Contains(bySignal, name) {
					out, _ := a.run("sleep 1000 >/dev/null 2>&1 & target=$!; " + attack +
						" 2>&1 && echo works; kill -9 $target")
					if !strings.Contains(out, "works") {
						t.Errorf("control: %s of a process of the sandbox: %q", name, out)
					}
				}
				for _, target := range targets {
					out, _ := a.run(fmt.Sprintf("target=%d; %s 2>&1 && echo works", target, attack))
					if strings.Contains(out, "works") {
						harness.Breach(t, "%s of process %d, which keeps the sandbox: %q", name, target, out)
					}
				}
			}
			for _, target := range targets {
				a.run(fmt.Sprintf("./victim kill-sigio %d", target))
				if !harness.Alive(target) || strings.Contains(harness.Read(t, fmt.Sprintf("/proc/%d/status", target)),
					"\nState:\tT") {
					harness.Breach(t, "process %d, which keeps the sandbox, was ended or stopped", target)
				}
			}
			if after := a.must("echo $PPID"); after != init {
				t.Errorf("the init was %s, and is %s", init, after)
			}
			a.kill()
			w.mustBeQuiet()
		})
	}
}

// closeAll closes every descriptor, and leaves a process that has written its id
// to a file.
const closeAll = `import os, signal
os.closerange(0, 1 << 16)
if os.fork() == 0:
    with open("closed.part", "w") as f: f.write(str(os.getpid()))
    os.rename("closed.part", "closed")
    signal.pause()
os._exit(0)
`

// fill starts processes until one is refused, 80 at most, and leaves them.
const fill = `import os, signal
made = []
try:
    while len(made) < 80:
        pid = os.fork()
        if pid == 0:
            os.closerange(0, 3)
            signal.pause()
        made.append(str(pid))
except OSError: pass
with open("filled", "w") as f: f.write(" ".join(made))
`

// A command may close all that it has, and take all memory and all processes. The
// next one works, or its error names the limit. What was left ends with the agent.
func TestTogether_ACommandMayTakeEverything(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(harness.Sandbox{
		"limits": map[string]any{"processes": 60, "memory": "128M"},
	}))
	harness.Write(t, w.ProjectPath("closeall.py"), closeAll)
	harness.Write(t, w.ProjectPath("fill.py"), fill)
	a := w.agent()
	// Where a limit does not hold, a link says so.
	must := func(line string) string {
		t.Helper()
		return strings.TrimSpace(withoutOurs(a.must(line) + "\n"))
	}
	init := must("echo $PPID")
	must("exec /usr/bin/python3 closeall.py")
	harness.Eventually(t, "a process was left", func() bool { return harness.Read(t, w.ProjectPath("closed")) != "" })
	left := harness.Read(t, w.ProjectPath("closed"))
	a.run("dd if=/dev/zero of=/dev/null count=1 bs=400M") // the kernel may end it
	if after := must("kill -0 " + left + " && echo $PPID"); after != init {
		t.Errorf("the init was %s, and is %s", init, after)
	}
	must("exec /usr/bin/python3 fill.py")
	filled := strings.Fields(harness.Read(t, w.ProjectPath("filled")))
	if len(filled) == 0 || !harness.Alive(pidOf(t, filled[0])) {
		t.Fatalf("control: no processes were left: %q", filled)
	}
	t.Logf("%d processes could be started", len(filled))
	// It runs in a sandbox of its own if there is no room for it, and says so.
	out, status := a.run("echo on $PPID")
	said := strings.Contains(harness.Unfold(out), "nothing more can be started in the agent's sandbox")
	on, is := strings.CutPrefix(strings.TrimSpace(withoutOurs(out+"\n")), "on ")
	if status != 0 || !is || (on == init) == said {
		t.Errorf("the next command: status %d: %s, where the init was %s", status, out, init)
	}
	for _, text := range filled { // control: with room it joins again
		_ = unix.Kill(pidOf(t, text), unix.SIGKILL)
	}
	harness.Eventually(t, "a command joins again", func() bool {
		out, _ := a.run("echo $PPID")
		return strings.TrimSpace(withoutOurs(out+"\n")) == init
	})
	a.kill()
	for _, text := range append(filled, left) {
		pid := pidOf(t, text)
		harness.MustEnd(t, "what was left ends with the agent", func() bool { return !harness.Alive(pid) })
	}
	w.mustBeQuiet()
}

// A command that stops the next one before that is executed holds up that one alone.
// The sandbox is ended, so that the one after it has another.
func TestTogether_AStoppedStartEndsTheSandbox(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "signals")
	w := newWorld(t, harness.Defaults(nil))
	harness.Victim(t, "tests/victim", w.ProjectPath("victim"))
	a := w.agent()
	init := a.must("./victim stop-starts $PPID caught >stopping 2>&1 & echo $PPID")
	out, status := "", 0
	for tries := 0; status == 0; tries++ {
		if tries == 500 {
			t.Fatalf("control: no start could be stopped: %s", harness.Read(t, w.ProjectPath("stopping")))
		}
		out, status = a.run("true")
	}
	if harness.Read(t, w.ProjectPath("caught")) == "" || !strings.Contains(harness.Unfold(out), "may have run") {
		t.Errorf("the command that was stopped: status %d: %s", status, out)
	}
	out = a.must("echo $PPID")
	now := strings.TrimSpace(withoutOurs(out + "\n"))
	if now == init || !strings.Contains(flat(out), "note: new sandbox") {
		t.Errorf("the next command has the init %s, and the first had %s: %s", now, init, out)
	}
	harness.MustEnd(t, "the sandbox ends", func() bool { return !harness.Alive(pidOf(t, init)) })
	a.kill()
	w.mustBeQuiet()
}

// A process of a session can start no command in the sandbox of an agent, neither
// by the program nor by the socket of the keeper, and it does not read where that
// is. The controls are outside.
func TestTogether_NothingJoinsFromInside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	w := newWorld(t, harness.Defaults(nil))
	inside := w.ProjectPath("sidecar")
	harness.Victim(t, "cmd/sandbox-sidecar", inside)
	harness.Write(t, w.ProjectPath("ask.py"), askTheKeeper)
	a, other := w.agent(), w.agent()
	a.must("true")
	file, socket, sandbox := w.kept()
	for name, line := range map[string]string{
		"exec --join": fmt.Sprintf("%s exec --join %s -- echo joined", inside, sandbox),
		"the socket":  fmt.Sprintf("/usr/bin/python3 ask.py '%s' && echo joined", socket),
		"the place":   fmt.Sprintf("grep -q socket '%s' && echo joined", file),
	} {
		control := w.command("/bin/sh", "-c", strings.ReplaceAll(line, inside, harness.Binary(t)))
		if out, err := control.CombinedOutput(); err != nil || !strings.Contains(string(out), "joined") {
			t.Errorf("control: %s: %v: %s", name, err, out)
		}
		for which, agent := range map[string]*agent{"its own agent": a, "another agent": other} {
			if out, status := agent.run(line); status == 0 || strings.Contains(out, "joined") {
				harness.Breach(t, "%s by a command of %s: %s", name, which, out)
			}
		}
	}
}

// askTheKeeper asks at a socket what runs. It fails if there is no answer. With a
// second argument another user asks. It goes to the directory first: another user
// finds no way there, and the path may be too long.
const askTheKeeper = `import os, socket, sys
os.chdir(os.path.dirname(sys.argv[1]))
if len(sys.argv) > 2:
    os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
s.connect("control")
print("connected", flush=True)
try:
    s.sendall(b'{"version":2,"list":{}}\n')
    answer = s.recv(100)
except OSError: answer = b""
sys.exit(len(answer) == 0)
`

// A process of another user gets no answer of a keeper, also if that user can
// connect to the socket.
func TestTogether_NoOtherUserJoins(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can become another user")
	}
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	init := a.must("echo $PPID")
	_, socket, _ := w.kept()
	harness.Must(t, os.Chmod(filepath.Dir(socket), 0o755))
	harness.Must(t, os.Chmod(socket, 0o666))
	ask := func(args ...string) (string, error) {
		args = append([]string{"-c", askTheKeeper, socket}, args...)
		out, err := w.command("/usr/bin/python3", args...).CombinedOutput()
		return string(out), err
	}
	if out, err := ask(); err != nil {
		t.Fatalf("control: %v: %s", err, out)
	}
	const nobody = "65534"
	switch out, err := ask(nobody); {
	case err == nil:
		harness.Breach(t, "the keeper answers another user: %s", out)
	case out != "connected\n":
		t.Errorf("another user could not connect: %v: %s", err, out)
	}
	harness.Must(t, os.Chmod(socket, 0o600))
	harness.Must(t, os.Chmod(filepath.Dir(socket), 0o700))
	if after := a.must("echo $PPID"); after != init {
		t.Errorf("the init was %s, and is %s", init, after)
	}
}

// rush is an agent that starts many commands at once. Each is found by its number in
// its command line, and in that of its link.
const rush = `i=0
while [ $i -lt 20 ]; do
	"$LINK" -c ": $TOKEN$i-; exec -a $TOKEN$i- sleep 1000" </dev/null >/dev/null 2>&1 &
	i=$((i+1))
done
wait
`

// An agent is killed while its commands start. What has joined its sandbox ends
// with it. A link that has not joined yet is a process of its own, whose parent
// is gone: it may run its command in a sandbox of its own, and that ends with the
// link.
func TestTogether_AnOwnerEndsWhileCommandsStart(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	_, random := harness.Generated(t, 1, 6)
	for i, machine := range harness.Machines(t) {
		seed := random.Uint64()
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			step := rand.New(rand.NewPCG(seed, 0))
			for round := range rounds {
				token := fmt.Sprintf("token-%d-%d-%d-", os.Getpid(), i, round)
				w.mustEndWhileCommandsStart(machine.Wrap, token, step.IntN(21))
			}
		})
	}
}

// mustEndWhileCommandsStart kills an agent once so many of its commands run.
func (w *world) mustEndWhileCommandsStart(wrap func(*exec.Cmd), token string, step int) {
	t := w.t
	t.Helper()
	script := filepath.Join(t.TempDir(), "agent.sh")
	harness.Write(t, script, rush)
	agent := w.command("/bin/bash", script)
	agent.Env = append(agent.Env, "LINK="+w.link("bash"), "TOKEN="+token)
	if wrap != nil {
		wrap(agent)
	}
	harness.Must(t, agent.Start())
	number := regexp.MustCompile(regexp.QuoteMeta(token) + `(\d+)-`)
	// running finds the commands, and their links with their process ids, by number.
	running := func() (commands map[string]bool, links map[string]int) {
		commands, links = map[string]bool{}, map[string]int{}
		for _, pid := range harness.Find(token) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			switch found := number.FindStringSubmatch(string(line)); {
			case found == nil: // it has ended
			case strings.HasPrefix(string(line), w.dir):
				links[found[1]] = pid
			default:
				commands[found[1]] = true
			}
		}
		return commands, links
	}
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		for _, pid := range harness.Find(token) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	harness.Eventually(t, "commands run", func() bool {
		commands, _ := running()
		return len(commands) >= step
	})
	harness.Must(t, agent.Process.Kill())
	_ = agent.Wait()
	what := fmt.Sprintf("once %d commands run", step)
	harness.MustEnd(t, "the keeper ends with the agent, "+what, func() bool {
		return len(w.keepersOf(agent.Process.Pid)) == 0
	})
	harness.MustEnd(t, "no command outlives the agent and its link, "+what, func() bool {
		commands, links := running()
		for number := range commands {
			if links[number] == 0 {
				return false
			}
		}
		return true
	})
	harness.Eventually(t, "no link waits for what never comes, "+what, func() bool {
		commands, links := running()
		return len(links) == len(commands)
	})
	harness.MustEnd(t, "every command ends with its link, "+what, func() bool {
		_, links := running()
		for _, pid := range links {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
		return len(harness.Find(token)) == 0
	})
	w.mustBeQuiet()
}

// Commands of an agent meet in the state directory. A session can have the agent
// load a variable, as from .env, that moves it to where the session writes: a text
// there names an older sandbox with more rights, or a socket of the session's own.
// So no sandbox is shared by such a variable, and it is said why.
func TestTogether_NoVariableOfASessionMovesTheMeeting(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for name, moved := range map[string]string{
		"XDG_RUNTIME_DIR": ".moved/sandbox-sidecar/shared",
		"XDG_STATE_HOME":  ".moved/sandbox-sidecar/run/shared",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			dir := w.ProjectPath(".moved")
			a := w.agent()
			a.must("mkdir -m 700 .moved && echo old >/tmp/of-agent")
			meeting := func() []string {
				found, err := filepath.Glob(w.ProjectPath(moved + "/*"))
				harness.Must(t, err)
				return found
			}
			a.must("@export " + name + "='" + dir + "'")
			out, _ := a.run("cat /tmp/of-agent")
			if said := harness.Unfold(out); strings.Contains(out, "old") ||
				!strings.Contains(said, name+" is not what bash (") {
				t.Errorf("it is said %q", out)
			}
			if found := meeting(); len(found) > 0 {
				harness.Breach(t, "the commands meet where a session writes: %q", found)
			}
			a.kill()
			b := w.agent(name + "=" + dir)
			b.must("echo new >/tmp/of-agent")
			// The review may say that it has no state of an earlier search there.
			if out := b.must("cat /tmp/of-agent"); !strings.HasPrefix(out, "new") {
				t.Errorf("control: an agent that was started with it shares: %q", out)
			}
			if len(meeting()) == 0 {
				t.Errorf("control: nobody meets at %s", moved)
			}
			b.kill()
		})
	}
}
