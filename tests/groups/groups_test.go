//go:build linux

package groups

import (
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// run runs a command line in a group, and returns what it printed and its end.
func run(e *harness.Editor, group, line string) (string, protocol.ExitedParams) {
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line, Group: group})
	exit := s.Exit()
	return strings.TrimSpace(s.Output()), exit
}

// machines are the ways in which sessions are confined and held together here.
func machines(t *testing.T) []harness.Machine {
	t.Helper()
	return append(harness.Machines(t),
		harness.Machine{Name: "without cgroups", Namespaces: harness.Namespaces(t), Wrap: harness.WithoutCgroups(t)})
}

// settings leave sessions a localhost of their own.
func settings(extra harness.Sandbox) string {
	block := harness.Sandbox{"allow_network": false}
	maps.Copy(block, extra)
	return harness.Defaults(block)
}

// inTurn are the machines of a list on which a test runs: see harness.Turn. Its name
// decides which of them has the first turn, so in each turn all machines have tests.
func inTurn(t *testing.T, list []harness.Machine) (chosen []harness.Machine) {
	t.Helper()
	first := int(crc32.ChecksumIEEE([]byte(t.Name())) >> 1)
	for i, machine := range list {
		if harness.Turn(t, first+i, len(list)) {
			chosen = append(chosen, machine)
		}
	}
	return chosen
}

// onEach runs a test on each machine, in turn.
func onEach(t *testing.T, test func(t *testing.T, e *harness.Editor, machine harness.Machine)) {
	t.Helper()
	harness.RequireSandbox(t)
	on(t, inTurn(t, machines(t)), test)
}

// onBoth is onEach for a test that tries more where sessions have namespaces: each
// turn has a machine with and one without.
func onBoth(t *testing.T, test func(t *testing.T, e *harness.Editor, machine harness.Machine)) {
	t.Helper()
	harness.RequireSandbox(t)
	var with, without []harness.Machine
	for _, machine := range machines(t) {
		if machine.Namespaces {
			with = append(with, machine)
		} else {
			without = append(without, machine)
		}
	}
	on(t, slices.Concat(inTurn(t, with), inTurn(t, without)), test)
}

// on runs a test on some machines.
func on(
	t *testing.T, list []harness.Machine, test func(t *testing.T, e *harness.Editor, machine harness.Machine),
) {
	t.Helper()
	for _, machine := range list {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			w := harness.NewWorldOutsideDefaults(t)
			test(t, harness.Start(t, w, harness.Options{Settings: settings(nil), Wrap: machine.Wrap}), machine)
		})
	}
}

// serve is a server on localhost that ends after one request.
const serve = `/usr/bin/python3 -c '
import socket
s = socket.create_server(("127.0.0.1", 0)); open("/tmp/port", "w").write(str(s.getsockname()[1]))
s.accept()[0].sendall(b"served")' & until test -s /tmp/port; do kill -0 $! || exit 9; done`

// ask asks that server.
const ask = `/usr/bin/python3 -c '
import socket
print(socket.create_connection(("127.0.0.1", int(open("/tmp/port").read()))).recv(9).decode())'`

// A file in /tmp, a server on localhost and a background process of one call are
// there for the next. A session that has a sandbox of its own, and one of another
// group, can neither signal the process nor reach the server.
func TestGroup_SharesWhatACallLeaves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		if !e.Hello.Capabilities.Groups {
			t.Fatal("the sidecar has no groups")
		}
		if machine.Namespaces {
			if out, exit := run(e, "agent", serve); *exit.ExitCode != 0 || exit.Background != 1 {
				t.Fatalf("a server was started: %q, %+v", out, exit)
			}
			for _, group := range []string{"", "own", "other"} {
				if out, _ := run(e, group, ask); strings.Contains(out, "served") {
					harness.Breach(t, "group %q reaches the server: %q", group, out)
				}
			}
			if out, _ := run(e, "agent", ask); !strings.HasPrefix(out, "served") {
				t.Errorf("the next call does not reach the server: %q", out)
			}
		}
		out, exit := run(e, "agent", "sleep 1000 & echo $!")
		if exit.Background != 1 {
			t.Errorf("%d processes in the background were counted", exit.Background)
		}
		for _, group := range []string{"", "own", "other"} {
			if got, _ := run(e, group, "kill -0 "+out+" && echo reached"); strings.Contains(got, "reached") {
				harness.Breach(t, "group %q can signal a process of another: %q", group, got)
			}
		}
		if got, _ := run(e, "agent", "kill -0 "+out+" && kill "+out+" && echo reached"); got != "reached" {
			t.Errorf("the next call cannot signal the process: %q", got)
		}
		pid, err := strconv.Atoi(out)
		harness.Must(t, err)
		harness.Eventually(t, "the process ends by the signal", func() bool { return !harness.Alive(pid) })
	})
}

// Two agents of one project do not find each other's files in /tmp. The next
// sandbox of the same agent does.
func TestGroup_HasTemporaryFilesOfItsOwn(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	// Without namespaces /tmp is shared, as the reply says.
	on(t, inTurn(t, withNamespaces(t)), func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		for _, group := range []string{"agent", "other", ""} {
			if out, _ := run(e, group, "echo "+group+"x >/tmp/of-"+group+"; ls /tmp | grep ^of-"); out != "of-"+group {
				harness.Breach(t, "group %q finds %q", group, out)
			}
		}
		harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		if out, _ := run(e, "agent", "cat /tmp/of-agent"); out != "agentx" {
			t.Errorf("the next sandbox of the same group finds %q", out)
		}
	})
}

// Background processes go on printing to the terminal or pipe of a call that has
// ended, and do not fail by that.
func TestGroup_BackgroundProcessesMayPrint(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		for _, pipe := range []bool{false, true} {
			s := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Group: "agent", Pipe: pipe,
				Command: `rm -f done; sh -c 'until test -e go; do echo noise; done; echo last && echo over >done' & true`,
			})
			if exit := s.Exit(); exit.Background == 0 {
				t.Errorf("pipe %t: nothing was left: %+v", pipe, exit)
			}
			run(e, "agent", "touch go; until test -s done; do :; done; rm go")
		}
	})
}

// Many calls at once have each their own output and status.
func TestGroup_CallsAreNotMixedUp(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		var calls sync.WaitGroup
		var dirs [100]string
		for i := range dirs {
			dirs[i] = e.World.ProjectPath(strconv.Itoa(i))
			harness.MakeDir(t, dirs[i])
			harness.Write(t, dirs[i]+"/name", fmt.Sprintf("in %d\n", i))
		}
		for i := range dirs {
			calls.Go(func() {
				s := e.Spawn(protocol.SpawnParams{
					Kind: protocol.Tool, Group: "agent", Pipe: i%2 == 0, ProjectDir: e.World.Project,
					Command: fmt.Sprintf("echo call %d; cat name >&2; exit %d", i, i), Cwd: dirs[i],
				})
				want := fmt.Sprintf("call %d\nin %d\n", i, i)
				if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != i || s.Output() != want {
					harness.Breach(t, "call %d: %+v, it printed %q", i, exit, s.Output())
				}
			})
		}
		calls.Wait()
	})
}

// Closing a session ends what belongs to it, and nothing of other calls.
// Closing the group leaves nothing.
func TestGroup_Close(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		other, _ := run(e, "agent", "sleep 1000 & echo $!")
		s := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Group: "agent",
			Command: `sleep 1000 & echo "pid $!"; setsid sleep 1000 & echo "pid $!"; sleep 1000`,
		})
		pids := s.Await(`pid (\d+)\s+pid (\d+)\s`)[1:]
		closed := s.Close(0)
		if closed.Killed < 3 || closed.Remaining != 0 {
			t.Errorf("closing the session: %+v", closed)
		}
		for _, text := range pids {
			pid, err := strconv.Atoi(text)
			harness.Must(t, err)
			if harness.Alive(pid) {
				harness.Breach(t, "process %d outlives the session that was closed", pid)
			}
		}
		pid, err := strconv.Atoi(other)
		harness.Must(t, err)
		if !harness.Alive(pid) {
			t.Error("closing one call has killed what another has left")
		}
		running := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: "agent", Command: "sleep 1000"})
		ended := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		if ended.Remaining != 0 || harness.Alive(pid) {
			harness.Breach(t, "closing the group leaves process %d: %+v", pid, ended)
		}
		if exit := running.Exit(); exit.Signal == nil || *exit.Signal != "SIGKILL" {
			t.Errorf("the session ended by %+v", exit)
		}
		if _, err := harness.Try(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"}); err == nil ||
			!strings.Contains(err.Error(), "not found") {
			t.Errorf("closing it again: %v", err)
		}
	})
}

// The end of the sidecar leaves nothing of a group, in order or by SIGKILL.
func TestGroup_EndsWithTheSidecar(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shutdown", "hang-up", "SIGKILL"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
				text, _ := run(e, "agent", `(setsid sh -c 'echo $$ >own; exec sleep 1000' &)
					until test -s own; do :; done; cat own; rm own; sleep 1000 & echo $!`)
				s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: "agent", Command: "echo up; sleep 1000"})
				s.Await("up")
				pids := []int{s.PID}
				for _, field := range strings.Fields(text) {
					pid, err := strconv.Atoi(field)
					harness.Must(t, err)
					pids = append(pids, pid)
				}
				sidecar := e.Process()
				switch name {
				case "shutdown":
					harness.Call(e, protocol.Shutdown, protocol.Empty{})
				case "hang-up":
					_ = e.HangUp()
				default:
					harness.Must(t, unix.Kill(sidecar, unix.SIGKILL))
				}
				for _, pid := range pids {
					harness.MustEnd(t, fmt.Sprintf("process %d ends", pid), func() bool { return !harness.Alive(pid) })
				}
				_ = e.HangUp()
				harness.NoTrace(t, e.World, sidecar)
			})
		})
	}
}

// A session under another policy gets another sandbox. The old one ends once
// nothing runs in it, and not before.
func TestGroup_AnotherPolicyIsAnotherSandbox(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		call := func() (init, policy string) {
			s, _ := e.Run(protocol.SpawnParams{Group: "agent", Command: "echo $PPID"})
			return strings.TrimSpace(s.Output()), s.PolicyID
		}
		before, first := call()
		if same, _ := call(); same != before {
			t.Fatalf("control: two calls have the inits %s and %s", before, same)
		}
		left, _ := run(e, "agent", "sleep 1000 & echo $!")
		harness.Write(t, e.World.UserSettings(),
			settings(harness.Sandbox{"additional_read_only_paths": []string{e.World.Outside}}))
		harness.Eventually(t, "the settings are another", func() bool {
			init, policy := call()
			if (init == before) != (policy == first) {
				harness.Breach(t, "policy %s has the init %s; before, policy %s had %s", policy, init, first, before)
			}
			return policy != first
		})
		init, err := strconv.Atoi(before)
		harness.Must(t, err)
		pid, err := strconv.Atoi(left)
		harness.Must(t, err)
		if !harness.Alive(init) || !harness.Alive(pid) {
			t.Error("the old group has ended although something ran in it")
		}
		harness.Must(t, unix.Kill(pid, unix.SIGKILL))
		harness.MustEnd(t, "the old group ends", func() bool { return !harness.Alive(init) })
	})
}

// Refusals and reviews are told to the session that caused them.
func TestGroup_TellsTheRightSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{})
	denials := harness.RecordDenials(e)
	waiting := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Group: "agent",
		Command: "echo up; until test -e go; do :; done; echo x >" + w.OutsidePath("first"),
	})
	waiting.Await("up")
	later := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Group: "agent", Command: "echo x >" + w.OutsidePath("second") + "; touch go",
	})
	later.Exit()
	waiting.Exit()
	for _, want := range []struct {
		session *harness.Session
		name    string
	}{{waiting, "first"}, {later, "second"}} {
		harness.Eventually(t, "the refusal of "+want.name, func() bool {
			return len(denials.Of(want.session.SessionID)) > 0
		})
		if got := denials.Of(want.session.SessionID); len(got) != 1 || got[0].Target != w.OutsidePath(want.name) {
			t.Errorf("session of %s was told: %+v", want.name, got)
		}
	}
	changed := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Group: "agent", Command: "echo all: >Makefile; sleep 1000 & true",
	})
	changed.Exit()
	if closed := changed.Close(0); len(closed.Review) == 0 {
		t.Error("the changed Makefile is in no review")
	}
	ended := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
	if len(ended.Review) == 0 {
		t.Error("the changed Makefile is not in the group's review")
	}
}

// typed is a shell of a group in a terminal, at its prompt.
func typed(e *harness.Editor) *harness.Session {
	s := e.Spawn(protocol.SpawnParams{
		Group: "agent", Shell: &protocol.Shell{Program: "/bin/bash", Args: []string{"--norc"}},
		Env: map[string]string{"PS1": "$ "},
	})
	s.Await(`[#$] `)
	return s
}

// A terminal in a group has job control, and sees what tools of the same kind
// left.
func TestGroup_ATerminalHasJobControl(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		s := typed(e)
		s.Type("sh -c 'echo run''ning; exec sleep 1000'\n")
		s.Await("running")
		s.Type("\x1a")
		s.Await("Stopped")
		s.Type("exec sh -c 'exit 7'\n") // exit would name the stopped job first
		if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 7 {
			t.Errorf("it ended by %+v", exit)
		}
	})
}

// What cannot be a group is refused, and so is a program that cannot be started.
func TestGroup_RefusesWhatItMust(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	e := harness.Start(t, harness.NewWorldOutsideDefaults(t), harness.Options{})
	for _, test := range []struct {
		params protocol.SpawnParams
		want   string
	}{
		{protocol.SpawnParams{Group: strings.Repeat("x", 257), Command: "true"}, "params.group"},
		{protocol.SpawnParams{Group: "a\x00b", Command: "true"}, "params.group"},
		{protocol.SpawnParams{Group: "agent", Command: "/nonexistent", Args: []string{"x"}}, "no such file"},
		{protocol.SpawnParams{Group: "agent", Command: "true", Cwd: "/nonexistent"}, "/nonexistent"},
	} {
		test.params.Kind = protocol.Tool
		if test.params.Cwd == "" {
			test.params.Cwd = e.World.Project
		}
		_, err := harness.Try(e, protocol.Spawn, test.params)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.params, err)
		}
	}
	if out, _ := run(e, "agent", "echo works"); out != "works" {
		t.Errorf("afterwards a call printed %q", out)
	}
}

// A session starts in the group's sandbox although its start is cancelled while
// others start.
func TestGroup_AnEndedStartDisturbsNoOther(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	e := harness.Start(t, harness.NewWorldOutsideDefaults(t), harness.Options{})
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			params := protocol.SpawnParams{
				Kind: protocol.Tool, Group: "agent", SessionID: id, Cwd: e.World.Project,
				Command: fmt.Sprintf("echo %d", i),
			}
			if i%2 == 1 {
				go func() { _, _ = harness.Try(e, protocol.Close, protocol.CloseParams{SessionID: id}) }()
				_, _ = harness.Try(e, protocol.Spawn, params)
				return
			}
			s := e.Spawn(params)
			if exit := s.Exit(); exit.ExitCode == nil || strings.TrimSpace(s.Output()) != strconv.Itoa(i) {
				t.Errorf("call %d: %+v, it printed %q", i, exit, s.Output())
			}
		})
	}
	calls.Wait()
	ended := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
	if ended.Remaining != 0 {
		harness.Breach(t, "closing the group: %+v", ended)
	}
}

// A session that asks for a group while that is closed either runs until then,
// or is not started, or starts when nothing of the closed one is left. None is
// left over.
func TestGroup_ClosedWhileSessionsStart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		for range 5 {
			var calls sync.WaitGroup
			for range 8 {
				calls.Go(func() {
					result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
						Kind: protocol.Tool, Group: "agent", Command: "sleep 1000", Cwd: e.World.Project,
					})
					switch {
					case err == nil:
						go e.Session(result).Exit() // by this or the next close
					case !strings.Contains(err.Error(), "closed meanwhile") &&
						!strings.Contains(err.Error(), "may have run"):
						t.Errorf("the session could not be started: %v", err)
					}
				})
			}
			_, _ = harness.Try(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
			calls.Wait()
		}
		_, _ = harness.Try(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		for _, s := range harness.Call(e, protocol.List, protocol.Empty{}).Sessions {
			if harness.Alive(s.PID) {
				harness.Breach(t, "process %d is left", s.PID)
			}
		}
	})
}

// Of a command in a group whose processes have changed nothing yet, the
// subdirectories are not searched: what a program outside changes meanwhile is not
// in its review. Once one command has changed a file, they are, for all.
func TestGroup_IsSearchedOnceACommandHasChangedSomething(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", p.Detail)
	}
	makefile := w.ProjectPath("sub/Makefile")
	harness.Write(t, makefile, "all:\n")
	found := func(line string) int {
		s := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: "/bin/bash", Args: []string{"-c", line}, Group: "agent", Pipe: true,
		})
		s.Await("ready")
		harness.Write(t, makefile, "all: changed\n")
		harness.Write(t, w.ProjectPath("go"), "")
		s.Exit()
		if err := os.Remove(w.ProjectPath("go")); err != nil {
			t.Fatal(err)
		}
		return len(s.Close(0).Review)
	}
	const read = "echo ready; until test -e go; do :; done; head -n 1 sub/Makefile"
	for _, test := range []struct {
		line string
		want int
	}{{read, 0}, {"exec 9>>notes; " + read, 1}, {read, 1}} {
		if got := found(test.line); got != test.want {
			t.Errorf("%q: %d findings, want %d", test.line, got, test.want)
		}
	}
}
