//go:build linux

package shells

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// agent is a program that starts a link for each command.
type agent struct {
	t       *testing.T
	command *exec.Cmd
	to      io.Writer
	from    *bufio.Reader
}

// loop is the agent's program: a command in each line, and after each what it has
// printed a line with its status. It runs what comes after "@" itself.
const loop = `while IFS= read -r line; do case $line in
@*) eval "${line#@}" ;;
*) "$LINK" -c "$line" </dev/null 2>&1 ;;
esac; s=$?; echo; echo "status=$s"; done`

// agent starts an agent. Its script is no part of the command line: a shell with -c
// would be there for one command alone.
func (w *world) agent(settings ...string) *agent {
	w.t.Helper()
	return w.agentUnder(nil, settings...)
}

// agentUnder starts an agent as wrap changes its command; nil changes nothing.
func (w *world) agentUnder(wrap func(*exec.Cmd), settings ...string) *agent {
	w.t.Helper()
	script := filepath.Join(w.t.TempDir(), "agent.sh")
	harness.Write(w.t, script, loop)
	command := w.command("/bin/bash", script)
	command.Env = append(command.Env, append(settings, "LINK="+w.link("bash"))...)
	if wrap != nil {
		wrap(command)
	}
	to, err := command.StdinPipe()
	harness.Must(w.t, err)
	from, err := command.StdoutPipe()
	harness.Must(w.t, err)
	command.Stderr = os.Stderr
	harness.Must(w.t, command.Start())
	a := &agent{w.t, command, to, bufio.NewReader(from)}
	w.t.Cleanup(a.kill)
	return a
}

// kill ends the agent by SIGKILL.
func (a *agent) kill() {
	_ = a.command.Process.Kill()
	_ = a.command.Wait()
}

// run has the agent run a command line, and returns what that has printed, and its
// status.
func (a *agent) run(line string) (out string, status int) {
	a.t.Helper()
	_, err := fmt.Fprintln(a.to, line)
	harness.Must(a.t, err)
	var printed strings.Builder
	for {
		text, err := a.from.ReadString('\n')
		if err != nil {
			a.t.Fatalf("%s: the agent has ended: %v: %s", line, err, printed.String())
		}
		if number, found := strings.CutPrefix(text, "status="); found {
			status, err = strconv.Atoi(strings.TrimSpace(number))
			harness.Must(a.t, err)
			return strings.TrimSpace(printed.String()), status
		}
		printed.WriteString(text)
	}
}

// must is run for a command that ends with status 0.
func (a *agent) must(line string) string {
	a.t.Helper()
	out, status := a.run(line)
	if status != 0 {
		a.t.Fatalf("%s: status %d: %s", line, status, out)
	}
	return out
}

func pidOf(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(text)
	harness.Must(t, err)
	return pid
}

// What one command of an agent leaves is there for the next: a file in /tmp, a
// server on localhost, a process that can be signalled. It is not there for
// another agent in the same project, and nothing is left once the agent has been
// killed.
func TestTogether(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(harness.Sandbox{"allow_network": false}))
	one, other := w.agent(), w.agent()
	pid := pidOf(t, one.must("sleep 1000 >/dev/null 2>&1 & echo $!"))
	if !harness.Alive(pid) {
		t.Fatal("the background process has ended with its command")
	}
	if out, status := other.run(fmt.Sprintf("kill -0 %d", pid)); status == 0 {
		harness.Breach(t, "another agent can signal it: %s", out)
	}
	one.must(fmt.Sprintf("kill -0 %d", pid))
	if harness.Namespaces(t) {
		one.must("echo mine >/tmp/of-agent")
		if out := one.must("cat /tmp/of-agent"); out != "mine" {
			t.Errorf("the next command finds %q", out)
		}
		if out, status := other.run("cat /tmp/of-agent"); status == 0 {
			harness.Breach(t, "another agent finds the file: %s", out)
		}
		one.must(serve)
		if out, status := other.run(ask); status == 0 {
			harness.Breach(t, "another agent reaches the server: %s", out)
		}
		if out := one.must(ask); out != "served" {
			t.Errorf("the next command gets %q of the server", out)
		}
	}
	one.kill()
	harness.Eventually(t, "the background process ends with the agent", func() bool { return !harness.Alive(pid) })
	if out := other.must("echo here"); out != "here" {
		t.Errorf("the other agent's next command prints %q", out)
	}
	other.kill()
	w.mustBeQuiet()
}

// serve is a server on localhost that ends after one request.
const serve = `python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); ` +
	`open("/tmp/port", "w").write(str(s.getsockname()[1])); s.accept()[0].sendall(b"served")' >/dev/null 2>&1 & ` +
	`until test -s /tmp/port; do kill -0 $! || exit 9; done`

// ask asks that server.
const ask = `python3 -c 'import socket; ` +
	`print(socket.create_connection(("127.0.0.1", int(open("/tmp/port").read()))).recv(9).decode())'`

// mustBeQuiet waits until no process of ours runs for the user, and nothing is left
// where commands meet.
func (w *world) mustBeQuiet() {
	w.t.Helper()
	harness.Eventually(w.t, "no session runs", func() bool {
		ps := w.command(harness.Binary(w.t), "ps")
		out, err := ps.CombinedOutput()
		return err == nil && string(out) == "no session runs\n"
	})
	// For as long as an agent lives, that says why a sandbox of its own has ended.
	harness.Eventually(w.t, "nothing else is left where commands meet", func() bool {
		left, _ := filepath.Glob(w.HomePath(".local/state/sandbox-sidecar/run/shared/*[0-9a-f]"))
		return !slices.ContainsFunc(left, func(path string) bool {
			text, err := os.ReadFile(path)
			name := strings.Split(filepath.Base(path), ".") // the namespace, the agent, its birth, a sum
			said := strings.Contains(string(text), `"ended":`) && harness.Alive(pidOf(w.t, name[1]))
			return err == nil && !said
		})
	})
}

// A command is what it is without sharing: its output, its errors, its status, its
// signal, what it was refused.
func TestTogether_ACommandIsAsAlone(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	together, alone := w.agent(), w.agent("SANDBOX_GROUP_OWNER=own")
	file := filepath.Join(w.Outside, "file")
	harness.Write(t, file, "outside\n")
	for _, line := range []string{
		"echo out; echo err >&2; exit 7", "kill -TERM $$", "kill -KILL $$", "pwd; echo $0 $#; umask; ulimit -n",
		"no-such-program", "cat " + file, "cd /; pwd", "exec 1>&-; echo lost", "set -o pipefail; false | true",
		"printf 'a\\0b' | od -c", "cat /proc/self/fd/0; ls /proc/self/fd | wc -l", "nice; id -u", "echo ${HOME} $PATH",
	} {
		got, status := together.run(line)
		want, wanted := alone.run(line)
		number := strings.NewReplacer("allow 1)", "allow N)", "allow 2)", "allow N)", "allow 3)", "allow N)",
			"allow 4)", "allow N)")
		if number.Replace(got) != number.Replace(want) || status != wanted {
			t.Errorf("%s: status %d and %q, alone %d and %q", line, status, got, wanted, want)
		}
	}
}

// SANDBOX_GROUP_OWNER chooses another ancestor, or none. What is no ancestor is
// refused, and the command has a sandbox of its own.
func TestTogether_TheOwnerCanBeNamed(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if !harness.Namespaces(t) {
		return // /tmp is shared there, as the reply says
	}
	w := newWorld(t, harness.Defaults(nil))
	for value, shared := range map[string]bool{
		"": true, strconv.Itoa(os.Getpid()): true, "own": false, "1": false, "no number": false,
	} {
		a := w.agent("SANDBOX_GROUP_OWNER=" + value)
		a.must("echo x >/tmp/shared; true")
		out, status := a.run("cat /tmp/shared")
		if (status == 0) != shared {
			t.Errorf("%q: status %d: %s", value, status, out)
		}
		if warned := strings.Contains(out, "SANDBOX_GROUP_OWNER"); warned != (value == "1" || value == "no number") {
			t.Errorf("%q: %s", value, out)
		}
	}
}

// A variable that an agent gets while it runs, as from a file that a session has
// written, names no process beyond the agent.
func TestTogether_NoVariableThatIsLoadedLaterNamesTheOwner(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if !harness.Namespaces(t) {
		return // /tmp is shared there, as the reply says
	}
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	a.must(fmt.Sprintf("@export SANDBOX_GROUP_OWNER=%d", os.Getpid()))
	out, _ := a.run("echo x >/tmp/shared; true")
	if !strings.Contains(flat(out), "was not started with that") {
		t.Errorf("it says %q", out)
	}
	if out, status := a.run("cat /tmp/shared"); status == 0 {
		harness.Breach(t, "the test's process owns the sandbox: %s", out)
	}
	a.must("@export SANDBOX_GROUP_OWNER=$$")
	a.must("echo x >/tmp/shared")
	if out := a.must("cat /tmp/shared"); out != "x" {
		t.Errorf("control: the agent names itself: %q", out)
	}
}

// An editor's own commands share no sandbox: they may be several agents', and the
// user's. One that was started as an owner does. A program of another name is an
// agent.
func TestTogether_AnEditorOwnsNothing(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if !harness.Namespaces(t) {
		return // /tmp is shared there, as the reply says
	}
	w := newWorld(t, harness.Defaults(nil))
	called := func(name string) func(*exec.Cmd) {
		return func(command *exec.Cmd) { command.Args[0] = name }
	}
	itself := func(command *exec.Cmd) { // the shell becomes the editor
		const line = `export SANDBOX_GROUP_OWNER=$$; exec -a nvim "$@"`
		command.Args = append([]string{"bash", "-c", line, "bash", command.Path}, command.Args[1:]...)
	}
	for name, c := range map[string]struct {
		wrap   func(*exec.Cmd)
		shares bool
	}{
		"an editor": {called("nvim"), false}, "an IDE": {called("/opt/idea/bin/idea"), false},
		"an editor that names itself": {itself, true}, "an agent": {called("agent"), true},
	} {
		a := w.agentUnder(c.wrap)
		a.must("echo x >/tmp/shared")
		if out, status := a.run("cat /tmp/shared"); (status == 0) != c.shares {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
}

// Settings that change make another sandbox, which has what they say. The old one
// stays while a process runs there.
func TestTogether_OtherSettingsAreAnotherSandbox(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	file := filepath.Join(w.Outside, "file")
	harness.Write(t, file, "outside\n")
	pid := pidOf(t, a.must("sleep 1000 >/dev/null 2>&1 & echo $!"))
	if out, status := a.run("cat " + file); status == 0 {
		harness.Breach(t, "a file outside is read: %s", out)
	}
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
		"additional_read_only_paths": []string{w.Outside},
	}))
	out := a.must("cat " + file)
	if !saysNew(out, "the settings, or what they protect here, have changed") || !strings.HasSuffix(out, "\noutside") {
		t.Errorf("a file that is granted now: %q", out)
	}
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	if out, status := a.run("cat " + file); status == 0 {
		harness.Breach(t, "a file that is not granted any more is read: %s", out)
	}
	if !harness.Alive(pid) {
		t.Error("the background process has ended, though the agent lives")
	}
	a.kill()
	harness.Eventually(t, "the background process ends with the agent", func() bool { return !harness.Alive(pid) })
	w.mustBeQuiet()
}

// Each of many commands at once gets its own output and status, and all share one
// sandbox.
func TestTogether_ManyAtOnce(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	many := 24
	if !testing.Short() {
		many = 100
	}
	named := fmt.Sprintf("SANDBOX_GROUP_OWNER=%d", os.Getpid())
	inits := make([]string, many)
	var running sync.WaitGroup
	for i := range many {
		running.Go(func() {
			command := w.command(w.link("bash"), "-c",
				fmt.Sprintf("ps -o sid= -p $PPID; for n in 1 2 3; do echo %d; done; exit %d", i, i%7))
			command.Env = append(command.Env, named)
			out, err := command.Output()
			lines := strings.Fields(string(out))
			if want := strconv.Itoa(i); len(lines) != 4 || lines[1] != want || lines[2] != want || lines[3] != want ||
				command.ProcessState.ExitCode() != i%7 {
				t.Errorf("command %d: %v: %q", i, err, out)
				return
			}
			inits[i] = lines[0]
		})
	}
	running.Wait()
	for i, init := range inits {
		if init != inits[0] {
			t.Errorf("command %d is below process %s, the first below %s", i, init, inits[0])
		}
	}
}

// Whoever starts a command by a link can end it, and it alone.
func TestTogether_AKilledLinkEndsItsCommand(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		other := w.command(w.link("bash"), "-c", "echo $$; exec sleep 1000")
		killed := w.command(w.link("bash"), "-c", "echo $$; sleep 1001; sleep 1002")
		var pids []int
		for _, command := range []*exec.Cmd{other, killed} {
			command.Env = append(command.Env, fmt.Sprintf("SANDBOX_GROUP_OWNER=%d", os.Getpid()))
			out, err := command.StdoutPipe()
			harness.Must(t, err)
			harness.Must(t, command.Start())
			t.Cleanup(func() { _ = command.Process.Kill() })
			line, err := bufio.NewReader(out).ReadString('\n')
			harness.Must(t, err)
			pids = append(pids, pidOf(t, strings.TrimSpace(line)))
		}
		harness.Must(t, killed.Process.Signal(signal))
		_ = killed.Wait()
		harness.Eventually(t, "the command ends", func() bool { return !harness.Alive(pids[1]) })
		if !harness.Alive(pids[0]) {
			t.Errorf("%s: the other command has ended, too", signal)
		}
		harness.Must(t, other.Process.Kill())
		_ = other.Wait()
		harness.Eventually(t, "the other command ends", func() bool { return !harness.Alive(pids[0]) })
	}
}

// A sandbox that one agent's commands share takes no command of another agent's
// link, even if that knows where it is. The user can look into it by exec --join.
func TestTogether_NoOtherAgentJoins(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	a.must("echo mine >/tmp/of-agent")
	var kept struct{ Socket, Sandbox string }
	harness.Must(t, json.Unmarshal([]byte(harness.Read(t, w.place())), &kept))
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	harness.Must(t, err)
	defer null.Close()
	for place, why := range map[string]string{
		filepath.Base(w.place()): "belongs to", // as for any process that the agent has not started
		"1.2.3.other":            "another policy",
		"":                       "another policy",
	} {
		joined, err := control.At(w.stateDir(), kept.Socket).JoinLink(kept.Sandbox, place, spawn.Joining{
			Argv: []string{"/bin/true"}, Dir: w.Project, Files: &[3]*os.File{null, null, null},
		})
		if err == nil {
			joined.Close()
			harness.Breach(t, "%q: this process has started a command in another one's sandbox", place)
		} else if !errors.Is(err, control.ErrNotStarted) || errors.Is(err, control.ErrAbsent) ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%q: the command was refused by %v", place, err)
		}
	}
	look := w.command(harness.Binary(t), "exec", "--join", kept.Sandbox, "--", "cat", "/tmp/of-agent")
	if out, err := look.CombinedOutput(); err != nil || string(out) != "mine\n" {
		t.Errorf("exec --join: %v: %s", err, out)
	}
}
