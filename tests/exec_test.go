package tests

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// The subcommand exec in a user's own terminal. What needs no terminal is in
// script/command_line.txtar.

// onTerminal starts the command on a terminal, in a world with settings that
// sandbox everything. The name "sandbox-sidecar" stands for the sidecar, whose
// path is also in the variable SIDECAR.
func onTerminal(t *testing.T, name string, args ...string) *harness.Terminal {
	t.Helper()
	return onTerminalWrapped(t, func(*exec.Cmd) {}, name, args...)
}

// onTerminalWrapped is onTerminal with a command that wrap has changed.
func onTerminalWrapped(t *testing.T, wrap func(*exec.Cmd), name string, args ...string) *harness.Terminal {
	t.Helper()
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	binary := harness.Binary(t)
	command := exec.Command(name, args...)
	if name == "sandbox-sidecar" {
		command = exec.Command(binary, args...)
	}
	command.Dir = w.Project
	command.Env = append(harness.Environ(w), "TERM=xterm", "PS1=$ ", "SIDECAR="+binary)
	wrap(command)
	return harness.StartTerminal(t, command)
}

func TestExec_InterruptReachesTheProgram(t *testing.T) {
	t.Parallel()
	harness.WithAndWithoutCgroups(t, interrupt)
}

func interrupt(t *testing.T, wrap func(*exec.Cmd)) {
	p := onTerminalWrapped(t, wrap, "sandbox-sidecar", "exec", "--", "sh", "-c",
		`trap 'echo got it; exit 5' INT; echo ready; while :; do sleep 0.01; done`)
	p.Await("ready")
	p.Type("\x03")
	p.Await("got it")
	if status := p.Status(); status != 5 {
		t.Errorf("exit status %d, want the program's 5", status)
	}

	p = onTerminalWrapped(t, wrap, "sandbox-sidecar", "exec", "--", "sh", "-c", "echo ready; exec sleep 1000")
	p.Await("ready")
	p.Type("\x03")
	p.Status()
	if end := p.Command.ProcessState.String(); end != "signal: interrupt" {
		t.Errorf("exec of a program that the interrupt ended: %s", end)
	}
}

func TestExec_IsOnTheCallersTerminal(t *testing.T) {
	t.Parallel()
	p := onTerminal(t, "sandbox-sidecar", "exec", "--", "sh", "-c",
		`test -t 0 && test -t 1 && test -t 2 && read x </dev/tty && echo "read $x"; stty size`)
	if err := pty.Setsize(p.TTY, &pty.Winsize{Cols: 77, Rows: 22}); err != nil {
		t.Fatal(err)
	}
	p.Type("this\n")
	p.Await("read this\r\n(?s:.*)22 77\r\n") // warnings may come in between
	if status := p.Status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestExec_SuspendAndResume(t *testing.T) {
	t.Parallel()
	harness.WithAndWithoutCgroups(t, suspendAndResume)
}

func suspendAndResume(t *testing.T, wrap func(*exec.Cmd)) {
	p := onTerminalWrapped(t, wrap, "bash", "--norc", "--noprofile", "--noediting", "-i")
	p.Type(`"$SIDECAR" exec -- sh -c 'echo run''ning; exec cat'` + "\n")
	p.Await("running")
	p.Type("\x1a")
	p.Await("Stopped")
	p.Type("echo in bet''ween\n")
	p.Await("in between")
	p.Type("fg\n")
	p.Type("again\n")
	p.Await(`(?s)again\r\n.*again\r\n`)
	p.Type("\x04")
	p.Type("echo stat''us $?\n")
	p.Await("status 0")

	// A shell inside stops its own jobs, and itself with "suspend". exec stops
	// and continues with it.
	p.Type(`"$SIDECAR" exec -- bash --norc --noprofile --noediting -i` + "\n")
	p.Type("echo ins''ide\n")
	p.Await("inside")
	p.Type("sh -c 'echo run''ning job; exec sleep 1000'\n")
	p.Await("running job")
	p.Type("\x1a")
	p.Await(`(?s)Stopped.*Stopped.*sleep 1000`)
	p.Type("kill -9 %1; wait %1; suspend -f\n")
	p.Await(`(?s)Stopped.*Stopped.*Stopped.*SIDECAR`)
	p.Type("fg\n")
	p.Type("echo ins''ide again\n")
	p.Await("inside again")
	p.Type("exit 4\n")
	p.Type("echo las''t $?\n")
	p.Await("last 4")
	p.Type("exit 0\n")
	p.Status()
}

func TestExec_PassesSignalsOn(t *testing.T) {
	t.Parallel()
	harness.WithAndWithoutCgroups(t, passSignals)
}

func passSignals(t *testing.T, wrap func(*exec.Cmd)) {
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	for signal, name := range map[unix.Signal]string{
		unix.SIGTERM: "TERM", unix.SIGHUP: "HUP", unix.SIGUSR1: "USR1",
		unix.SIGUSR2: "USR2",
	} {
		command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c",
			"trap 'echo got "+name+"; exit 6' "+name+"; echo ready; while test -d \"$PWD\"; do sleep 0.01; done")
		command.Dir, command.Env = w.Project, harness.Environ(w)
		wrap(command)
		var out harness.Buffer
		command.Stdout = &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// If the test has failed, the program still runs. Without its
			// parent it ends when its directory is removed.
			_ = command.Process.Kill()
		})
		out.Await(t, "ready")
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if status := command.ProcessState.ExitCode(); status != 6 || !strings.Contains(out.String(), "got "+name) {
			t.Errorf("%s: exit status %d, output %q", name, status, out.String())
		}
	}
}

func TestExec_NothingOutlivesTheCommand(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "unsandboxed": harness.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			harness.WithAndWithoutCgroups(t, func(t *testing.T, wrap func(*exec.Cmd)) {
				leaveBehind(t, settings, wrap)
			})
		})
	}
}

func leaveBehind(t *testing.T, settings string, wrap func(*exec.Cmd)) {
	if _, err := exec.LookPath("setsid"); err != nil {
		harness.Skip(t, "setsid", err.Error())
	}
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), settings)
	command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c",
		"(setsid sleep 1000 >/dev/null 2>&1 & echo $!); exit 7")
	command.Dir, command.Env = w.Project, harness.Environ(w)
	wrap(command)
	out, _ := command.Output()
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if status := command.ProcessState.ExitCode(); err != nil || status != 7 {
		t.Fatalf("exit status %d, output %q", status, out)
	}
	if harness.Alive(pid) {
		harness.Breach(t, "process %d is alive", pid)
	}
	if left := w.Cgroups(t, command.Process.Pid); len(left) != 0 {
		harness.Breach(t, "cgroups are left: %s", left)
	}
}

func TestExec_LeavesStreamsAlone(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	run := func(stdin []byte, args ...string) (stdout, stderr string, status int) {
		command := exec.Command(harness.Binary(t), append([]string{"exec", "--"}, args...)...)
		command.Dir, command.Env, command.Stdin = w.Project, harness.Environ(w), bytes.NewReader(stdin)
		var out, failures bytes.Buffer
		command.Stdout, command.Stderr = &out, &failures
		_ = command.Run()
		return out.String(), failures.String(), command.ProcessState.ExitCode()
	}
	data := bytes.Repeat([]byte{0, 255, '\n', 'x'}, 300_000)
	if out, failures, status := run(data, "cat"); out != string(data) || failures != "" || status != 0 {
		harness.Breach(t, "%d bytes of %d through a pipe, stderr %q, status %d", len(out), len(data), failures, status)
	}
	if out, failures, status := run(nil, "sh", "-c",
		"echo out; echo err >&2; test -t 0 || test -t 1 || exit 9"); out != "out\n" || failures != "err\n" ||
		status != 9 {
		t.Errorf("got %q, %q, %d", out, failures, status)
	}
}

// TestPolicyCommand_IsWhatTheProtocolSays: both come from the same settings and
// must not drift apart.
func TestPolicyCommand_IsWhatTheProtocolSays(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Settings(
		harness.Sandbox{"additional_read_only_paths": []string{w.Outside}, "toolchains": []string{}})})
	for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
		command := exec.Command(harness.Binary(t), "policy", "--json", "--project", w.Project, "--kind", string(kind))
		command.Env = harness.Environ(w)
		out, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(out))
		decoder.DisallowUnknownFields()
		var printed protocol.PolicyGetResult
		if err := decoder.Decode(&printed); err != nil {
			t.Fatalf("%s: %v in %s", kind, err, out)
		}
		answered := harness.Call(e, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: w.Project, Kind: kind})
		got, _ := json.Marshal(printed)
		want, _ := json.Marshal(answered)
		if !bytes.Equal(got, want) || printed.PolicyID == "" || len(printed.Policy.Rules) == 0 {
			t.Errorf("%s:\nprinted  %s\nanswered %s", kind, got, want)
		}
		people := exec.Command(command.Path, append([]string{"policy"}, command.Args[3:]...)...)
		people.Env = command.Env
		human, err := people.Output()
		if err != nil || !bytes.Contains(human, []byte(printed.PolicyID)) {
			t.Errorf("%s: for people: %v, %q", kind, err, human)
		}
		for _, origin := range printed.Policy.Origins {
			if !bytes.Contains(human, []byte(origin.Key)) {
				t.Errorf("%s: people do not learn of %s: %s", kind, origin.Key, origin.Value)
			}
		}
	}
}

func TestSchemaCommand_PrintsASchema(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(harness.Binary(t), "schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Schema     string                     `json:"$schema"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(out, &schema); err != nil || schema.Schema == "" || schema.Properties["terminal"] == nil {
		t.Errorf("%v in %.300s", err, out)
	}
}

// A terminal's number may be too high for the session's own /dev/pts to show
// it. Then the session keeps the shared one, in which it can open only that
// terminal.
func TestExec_OnATerminalWithAHighNumber(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const more = 520
	var first string
	for range more {
		master, slave, err := pty.Open()
		if err != nil {
			harness.Skip(t, "terminals", err.Error())
		}
		if first == "" {
			first = slave.Name()
		}
		defer master.Close()
		defer slave.Close()
	}
	p := onTerminal(t, "sandbox-sidecar", "exec", "--", "sh", "-c",
		`tty; exec 3<>"$(tty)" && echo own >&3; (exec 4<>"$1") 2>/dev/null || echo others refused`, "sh", first)
	p.Await(`/dev/pts/\d+\r\n(?s:.*)own\r\nothers refused`)
	if status := p.Status(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// exec guesses which namespaces the machine has. If the guess is wrong, the
// program still runs, confined by what there is.
func TestExec_OnEveryMachine(t *testing.T) {
	t.Parallel()
	outside, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range harness.Machines(t) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			wrap := machine.Wrap
			if wrap == nil {
				wrap = func(*exec.Cmd) {}
			}
			p := onTerminalWrapped(t, wrap, "sandbox-sidecar", "exec", "--", "sh", "-c",
				"readlink /proc/self/ns/mnt; ls / || echo refused; echo ran >mine; cat mine; exit 7")
			if status := p.Status(); status != 7 {
				t.Errorf("exit status %d, want the program's 7", status)
			}
			p.Await("refused\r?\nran")
			if own := !strings.Contains(p.Screen.String(), outside); own != machine.Namespaces {
				t.Errorf("in a mount namespace of its own: %t, want %t:\n%s", own, machine.Namespaces,
					p.Screen.String())
			}
		})
	}
}
