//go:build linux

package groups

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What a session asks for is the same in a group as in a sandbox of its own,
// whichever session came first.
func TestGroup_TheFirstSessionDecidesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		harness.MakeDir(t, e.World.ProjectPath("dir"))
		const tell = `pwd; echo "$PWD $LC_ALL $TMPDIR $HOME $LANG"; umask; ulimit -a | grep -v processes; test -t 1 && stty size <&1
			cut -d' ' -f6 /proc/self/stat | grep -qx $$ && echo leads; grep -E 'Sig(Blk|Ign)|NoNewPrivs|Groups|Threads' /proc/self/status`
		first := protocol.SpawnParams{
			Command: tell, Cwd: e.World.ProjectPath("dir"), ProjectDir: e.World.Project, Cols: 33, Rows: 11,
			Env: map[string]string{"TMPDIR": "/tmp/first", "HOME": e.World.Project, "LANG": "C.UTF-8"},
		}
		later := protocol.SpawnParams{
			Command: tell, Cwd: e.World.Project, ProjectDir: e.World.Project, Pipe: true,
			Env: map[string]string{"LC_ALL": "C"},
		}
		ownFiles := regexp.MustCompile(`/tmp/sandbox-sidecar-\w+/`) // of a group, or of the project
		run := func(params protocol.SpawnParams, group string) string {
			params.Group = group
			s, _ := e.Run(params)
			return ownFiles.ReplaceAllString(s.Output(), "/tmp/own/")
		}
		for group, order := range map[string][]protocol.SpawnParams{
			"a": {first, later, first}, "b": {later, first, later},
		} {
			for _, params := range order {
				got, want := run(params, group), run(params, "own")
				if got != want || !strings.Contains(got, params.Cwd) {
					t.Errorf("in a group:\n%s\nin a sandbox of its own:\n%s", got, want)
				}
			}
		}
	})
}

// A session that must have every protection fails alone where one is lacking.
func TestGroup_AFailedStartFailsNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		policy := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "true"}).PolicyID
		demanding := protocol.SpawnParams{Kind: protocol.Tool, Command: "true", Cwd: e.World.Project, PolicyID: policy}
		_, lacking := harness.Try(e, protocol.Spawn, demanding)
		var calls sync.WaitGroup
		for i := range 20 {
			params := demanding
			params.Group = fmt.Sprint(i % 2)
			if i >= 10 {
				params.PolicyID = ""
			}
			calls.Go(func() {
				_, err := harness.Try(e, protocol.Spawn, params)
				switch {
				case params.PolicyID == "" && err != nil:
					t.Errorf("the error of another session: %v", err)
				case params.PolicyID != "" && (err == nil) != (lacking == nil):
					t.Errorf("in a group: %v, in a sandbox of its own: %v", err, lacking)
				}
			})
		}
		calls.Wait()
	})
}

// A project is one whatever its directory is called.
func TestGroup_AProjectByALink(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	link := w.OutsidePath("link")
	harness.Must(t, os.Symlink(w.Project, link))
	inits := map[string]bool{}
	for _, dir := range []string{w.Project, link, w.Project + "/", link + "/."} {
		s, _ := e.Run(protocol.SpawnParams{Group: "agent", Command: "echo $PPID", Cwd: w.Project, ProjectDir: dir})
		inits[s.Output()] = true
	}
	if len(inits) != 1 {
		t.Errorf("the project by four names has the inits %v", inits)
	}
	for _, dir := range []string{w.Project, link + "/"} {
		other := protocol.CloseGroupParams{Group: "agent", ProjectDir: w.Home}
		if _, err := harness.Try(e, protocol.CloseGroup, other); err == nil {
			t.Error("a group of another project was closed")
		}
		run(e, "agent", "true")
		harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent", ProjectDir: dir})
	}
}

// A session whose variable leads to another ssh-agent gets neither that of
// others nor takes it from them.
func TestGroup_TheAgentOfASessionIsItsOwn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem", "unix_sockets")
	w := harness.NewWorldOutsideDefaults(t)
	socket := filepath.Join(harness.ShortDir(t), "agent")
	listener, err := net.Listen("unix", socket)
	harness.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	e := harness.Start(t, w, harness.Options{
		Settings: settings(harness.Sandbox{"toolchains": []string{"ssh"}, "signing_keys": []string{"*"}}),
		Env:      []string{"SSH_AUTH_SOCK=" + socket, "XDG_RUNTIME_DIR=" + harness.ShortDir(t)},
	})
	run := func(group string, env map[string]string) string {
		s, _ := e.Run(protocol.SpawnParams{
			Group: group, Env: env, Command: `case $SSH_AUTH_SOCK in "" | /nowhere) echo "$SSH_AUTH_SOCK" ;;
				*) test "$SSH_AUTH_SOCK" != ` + socket + ` && test -S "$SSH_AUTH_SOCK" && echo filtered ;; esac`,
		})
		return strings.TrimSpace(s.Output())
	}
	none := map[string]string{"SSH_AUTH_SOCK": "/nowhere"}
	if got := run("own", nil); got != "filtered" {
		t.Fatalf("control: in a sandbox of its own the variable is %q", got)
	}
	for group, order := range map[string][]map[string]string{"a": {none, nil}, "b": {nil, none}} {
		for _, env := range order {
			if got, want := run(group, env), run("own", env); got != want {
				t.Errorf("group %s: with %v the variable is %q, in a sandbox of its own %q", group, env, got, want)
			}
		}
	}
}

// At the limit of memory the kernel ends what takes it, and leaves the group.
func TestGroup_MemoryIsLimited(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{
		Settings: settings(harness.Sandbox{"limits": map[string]any{"memory": "64M"}}),
	})
	before, _ := run(e, "agent", "sleep 1000 & echo $PPID $!")
	taking, _ := e.Run(protocol.SpawnParams{
		Group: "agent", Command: "dd if=/dev/zero of=/dev/null count=1 status=none bs=200M && echo taken; echo over",
	})
	limited := strings.Contains(taking.Sandbox.Protections["limits"].Mechanism, "memory.max")
	if got := strings.Fields(taking.Output()); strings.Contains(taking.Output(), "taken") == limited ||
		got[len(got)-1] != "over" {
		t.Errorf("beyond the limit of %+v: %q", taking.Sandbox.Protections["limits"], got)
	}
	pid := strings.Fields(before)[1]
	if after, _ := run(e, "agent", "kill -0 "+pid+" && echo $PPID "+pid); after != before {
		t.Errorf("the init and a process of the group were %s, and are %s", before, after)
	}
}

// Without a sandbox a group is what ends together.
func TestGroup_WithoutASandbox(t *testing.T) {
	t.Parallel()
	for _, machine := range inTurn(t, machines(t)) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Off(), Wrap: machine.Wrap})
			out, exit := run(e, "agent", "sleep 1000 & echo $PPID $!")
			if exit.Background != 1 {
				t.Errorf("nothing was left: %+v", exit)
			}
			pid := strings.Fields(out)[1]
			if again, _ := run(e, "agent", "kill -0 "+pid+" && echo $PPID "+pid); again != out {
				t.Errorf("the init and what was left were %s, and are %s", out, again)
			}
			s := e.Spawn(protocol.SpawnParams{
				Group: "agent", Shell: &protocol.Shell{Program: "/bin/sh"}, Env: map[string]string{"PS1": "$ "},
			})
			s.Type("echo up-$((1+1)); exit 7\n")
			if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 7 || !strings.Contains(s.Output(), "up-2") {
				t.Errorf("a terminal: %+v, %q", exit, s.Output())
			}
			closed := harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
			if closed.Remaining != 0 {
				t.Errorf("%+v", closed)
			}
			number, err := strconv.Atoi(pid)
			harness.Must(t, err)
			if harness.Alive(number) {
				harness.Breach(t, "a process outlives its group")
			}
		})
	}
}

// A group whose processes are all taken keeps its init. A session that cannot
// start is told of the limit, and what is left after an end starts again.
func TestGroup_ProcessesAreLimited(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	for _, machine := range inTurn(t, machines(t)) {
		t.Run(machine.Name, func(t *testing.T) {
			t.Parallel()
			e := harness.Start(t, harness.NewWorldOutsideDefaults(t), harness.Options{
				Settings: settings(harness.Sandbox{"limits": map[string]any{"processes": 40}}), Wrap: machine.Wrap,
			})
			before, _ := run(e, "agent", "echo $PPID")
			// Where nothing limits root's processes, these are as many as it gets.
			filling := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Group: "agent", Pipe: true, Command: `/usr/bin/python3 -c '
import os, signal
for i in range(80):
    try:
        if os.fork() == 0:
            signal.pause()
    except OSError:
        break
print("filled", i, flush=True); signal.pause()'`,
			})
			number, err := strconv.Atoi(filling.Await(`filled (\d+)`)[1])
			harness.Must(t, err)
			t.Logf("%d processes could be started", number)
			for range 10 {
				result, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
					Kind: protocol.Tool, Group: "agent", Command: "true", Cwd: e.World.Project,
				})
				switch {
				case err == nil:
					e.Session(result).Exit()
				case number == 79 || !strings.Contains(err.Error(), "limits.processes"):
					t.Errorf("the session could not be started: %v", err)
				}
			}
			filling.Close(0)
			if after, _ := run(e, "agent", "echo $PPID"); after != before {
				t.Errorf("the init was %s, and is %s", before, after)
			}
		})
	}
}

// What is refused to a background process while no session runs is told to the
// next one, once.
func TestGroup_TheNextSessionHearsOfTheBackground(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{})
	denials := harness.RecordDenials(e)
	run(e, "agent", "(until test -e go; do :; done; echo x >"+w.OutsidePath("refused")+
		"; touch over) >/dev/null 2>&1 & true")
	harness.Write(t, w.ProjectPath("go"), "")
	harness.Eventually(t, "the process was refused", func() bool {
		_, err := os.Lstat(w.ProjectPath("over"))
		return err == nil
	})
	next := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: "agent", Command: "true"})
	next.Exit()
	harness.Eventually(t, "the next session hears of it", func() bool { return len(denials.Of(next.SessionID)) > 0 })
	after := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Group: "agent", Command: "true"})
	after.Exit()
	after.Close(0)
	if all := denials.All(); len(all) != 1 || all[0].Target != w.OutsidePath("refused") {
		t.Errorf("%+v", all)
	}
}

// A terminal of a group is resized and interrupted as any other.
func TestGroup_ATerminalIsResizedAndInterrupted(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, _ harness.Machine) {
		s := typed(e)
		harness.Notify(e, protocol.Resize, protocol.ResizeParams{SessionID: s.SessionID, Cols: 71, Rows: 17})
		// What prints has the terminal already.
		s.Type("stty size; sh -c 'echo run''ning; exec sleep 1000'\n")
		s.Await(`17 71\s+running`)
		s.Type("\x03")
		s.Type("echo status $?\n")
		s.Await("status 130")
		s.Type("exit 3\n")
		if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 3 {
			t.Errorf("it ended by %+v", exit)
		}
	})
}
