//go:build linux

package groups

import (
	"errors"
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

// joining is a command that joins the group "agent".
func joining(t testing.TB, e *harness.Editor, machine harness.Machine, argv ...string) *exec.Cmd {
	c := command(t, e.World, append([]string{"exec", "--join", "agent", "--"}, argv...)...)
	if machine.Wrap != nil {
		machine.Wrap(c)
	}
	return c
}

// A command that joins has what the group's sessions have: their files in /tmp,
// their server, their processes and their policy. Its streams and its end are its
// own.
func TestJoin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		run(e, "agent", "echo shared > /tmp/shared")
		out, _ := run(e, "agent", "sleep 1000 & echo $!")
		join := func(line string) (stdout string, status int) {
			t.Helper()
			c := joining(t, e, machine, "sh", "-c", line)
			c.Stdin = strings.NewReader("typed")
			text, err := c.Output()
			var failed *exec.ExitError
			if err != nil && !errors.As(err, &failed) {
				t.Fatal(err)
			}
			return string(text), c.ProcessState.ExitCode()
		}
		text, status := join("cat /tmp/shared -; kill -0 " + out + " && exit 7")
		if text != "shared\ntyped" || status != 7 {
			t.Errorf("joined: %q, status %d", text, status)
		}
		file := filepath.Join(e.World.Outside, "file")
		harness.Write(t, file, "secret")
		if text, status := join("cat " + file); status == 0 || strings.Contains(text, "secret") {
			harness.Breach(t, "a joined command reads outside: %q", text)
		}
		if machine.Namespaces {
			if out, exit := run(e, "agent", serve); *exit.ExitCode != 0 {
				t.Fatalf("a server was started: %q, %+v", out, exit)
			}
			if text, _ := join(ask); !strings.HasPrefix(text, "served") {
				t.Errorf("the server is not reached: %q", text)
			}
		}
		if _, status := join("kill -TERM $$"); status != -1 {
			t.Errorf("a signal: status %d", status)
		}
		for name, want := range map[string]int{"/nothing/here": 127, "/etc/passwd": 126} {
			c := joining(t, e, machine, name)
			if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != want {
				t.Errorf("%s: %v, want %d: %s", name, err, want, out)
			}
		}
		list := harness.Call(e, protocol.ListGroups, protocol.Empty{}).Groups
		if len(list) != 1 || list[0].Sessions != 0 {
			t.Errorf("left: %+v", list)
		}
	})
}

// A caller's signals reach the command, and its death ends it.
func TestJoin_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		run(e, "agent", "true")
		start := func(line string) *exec.Cmd {
			c := joining(t, e, machine, "sh", "-c", line)
			runsUntilRead(t, c)
			return c
		}
		count := func() int {
			list, _ := ps(t, e.World, machine.Wrap)
			sessions := one(t, list, "serve").Sessions
			for _, s := range sessions {
				if s.Joined == s.Shared {
					t.Errorf("it is not said who has started it: %+v", s)
				}
			}
			return len(sessions) - 1
		}
		told := filepath.Join(e.World.Project, "told")
		c := start("trap 'echo told > " + told + "; exit 3' TERM; echo runs; while :; do sleep 0.05; done")
		_ = c.Process.Signal(unix.SIGTERM)
		harness.Eventually(t, "the signal has come", func() bool {
			_, err := os.Stat(told)
			return err == nil && count() == 0
		})
		c = start("echo runs; exec sleep 1000")
		// Its output may come before the word that it runs.
		harness.Eventually(t, "control: it is listed", func() bool { return count() == 1 })
		_ = c.Process.Kill()
		harness.Eventually(t, "the command has ended with its caller", func() bool { return count() == 0 })
	})
}

// On a terminal the command has one of the sandbox's own, with job control and the
// size of the caller's, and the caller's has its modes again.
func TestJoin_OnATerminal(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		run(e, "agent", "true")
		c := joining(t, e, machine, "bash", "--norc")
		around := `stty rows 33 cols 77; before=$(stty -g); "$@"; echo "status=$?"
			test "$before" = "$(stty -g)" && echo restored`
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", around, "sh"}, c.Args...)
		p := harness.StartTerminal(t, c)
		p.Type("stty size; PS1='ready> '\n")
		p.Await("33 77")
		p.Type("sh -c 'echo u$((1)); tty; exec sleep 1000'\n")
		p.Await(`u1\s+/dev/pts/`)
		p.Type("\x1a")
		p.Await("Stopped")
		p.Type("kill %1; sh -c 'echo u$((2)); exec cat'\n")
		p.Await(`u2\s`)
		p.Type("\x03")
		p.Await(`\^C(.|\s)*ready> `)
		p.Type("exit 5\n")
		p.Await("status=5")
		p.Await("restored")
		if status := p.Status(); status != 0 {
			t.Errorf("status %d", status)
		}
	})
}

// In the background the command runs, and leaves the terminal to its shell. In the
// foreground it gets what is typed, and the terminal has its modes again afterwards.
func TestJoin_InTheBackground(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	run(e, "agent", "true")
	for name, stdout := range map[string]string{"terminal": "", "pipeline": "| cat"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := joining(t, e, harness.Machine{}, "sh", "-c", "echo runs; read line; echo got-$line")
			shell := `PS1='ready> '; before=$(stty -g); joined() { "$@" ` + stdout + `; }; `
			argv := c.Args
			c.Path, c.Args = "/bin/bash", []string{"bash", "--norc", "-i"}
			p := harness.StartTerminal(t, c)
			p.Type(shell + "\n" + "joined '" + strings.Join(argv, "' '") + "' &\n")
			t.Cleanup(func() { _, _ = p.TTY.WriteString("\nkill -9 %1; exit\n") }) // it holds the terminal
			p.Await(`runs\r*\n`)
			p.Type("echo shell-$((1))\n")
			p.Await(`shell-1\r?\n`)
			p.Type("jobs\n")
			p.Await(`\[1\]\+? +Running`)
			p.Type("fg\n")
			p.Await(`fg\r*\n(.|\s)*joined`)
			p.Type("typed\r")
			p.Await(`got-typed\r*\n(.|\s)*ready> `)
			p.Type(`test "$before" = "$(stty -g)" && echo restored-$((1))` + "\nexit\n")
			p.Await("restored-1")
			p.Status()
		})
	}
}

// A program in the same pipeline that reads keys from the terminal gets them. If it
// reads none, the command inside gets what is typed.
func TestJoin_LeavesKeysToAPager(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	run(e, "agent", "true")
	for name, test := range map[string]struct{ reader, typed, want string }{
		"pager": {
			`sh -c 'before=$(stty -g </dev/tty); stty -icanon -echo </dev/tty; echo ready-$((1))
				for key in 1 2 3 4 5; do dd bs=1 count=1 </dev/tty 2>/dev/null; done; echo; stty $before </dev/tty'`,
			"abcde", `abcde\r?\n`,
		},
		"password": {
			`sh -c 'stty -echo </dev/tty; echo ready-$((1)); read line </dev/tty; stty echo </dev/tty; echo got-$line'`,
			"secret\n", `got-secret\r?\n`,
		},
		"control: none": {`sh -c 'echo ready-$((1)); cat'`, "abc\n", `INSIDE: ABC\r?\n`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := joining(t, e, harness.Machine{}, "sh", "-c", "read line; echo INSIDE: $(echo $line | tr a-z A-Z)")
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" | ` + test.reader, "sh"}, c.Args...)
			p := harness.StartTerminal(t, c)
			p.Await(`ready-1`)
			for _, key := range strings.SplitAfter(test.typed, "") {
				p.Type(key)
			}
			p.Await(test.want)
		})
	}
}

// The end of the sandbox ends the command, which says so. The caller's terminal has
// its modes again.
func TestJoin_EndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *harness.Editor, machine harness.Machine) {
		const line = "trap '' TERM HUP; echo r''uns; while :; do sleep 0.05; done"
		end := func() {
			harness.Eventually(t, "its start is known", func() bool {
				list, _ := ps(t, e.World, machine.Wrap)
				return len(one(t, list, "serve").Sessions) == 2
			})
			harness.Call(e, protocol.CloseGroup, protocol.CloseGroupParams{Group: "agent"})
		}
		run(e, "agent", "true")
		c := joining(t, e, machine, "sh", "-c", line)
		out := &harness.Buffer{}
		c.Stdout, c.Stderr = out, out
		harness.Must(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill() })
		out.Await(t, "runs\n")
		end()
		_ = c.Wait() // the status says it
		const want = "the sandbox has ended, and with it the command"
		if status := c.ProcessState.ExitCode(); status != 1 || !strings.Contains(harness.Unfold(out.String()), want) {
			t.Errorf("status %d: %s", status, out)
		}
		run(e, "agent", "true")
		c = joining(t, e, machine, "sh", "-c", line)
		around := `before=$(stty -g); "$@"; echo "status=$?"; test "$before" = "$(stty -g)" && echo restored`
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", around, "sh"}, c.Args...)
		p := harness.StartTerminal(t, c)
		p.Await("runs")
		end()
		p.Await(`the sandbox has ended(.|\s)*status=1\s+restored`)
		p.Status()
	})
}

// What a joined command was refused comes with the command that allows it, also from
// another directory. The control finds the refusal by that number.
func TestJoin_SaysWhatWouldAllowIt(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	if p := e.Hello.Capabilities.Enforcement["denials"]; !strings.Contains(p.Mechanism, "seccomp") {
		harness.Skip(t, "user_notification", p.Detail)
	}
	run(e, "agent", "true")
	file := filepath.Join(w.Outside, "file")
	harness.Write(t, file, "")
	for dir, allow := range map[string]string{
		w.Project: "sandbox-sidecar allow 1",
		w.Home:    fmt.Sprintf("sandbox-sidecar allow --project %q 1", w.Project),
	} {
		c := joining(t, e, harness.Machine{}, "cat", file)
		c.Dir = dir
		out, _ := c.CombinedOutput() // cat fails
		want := fmt.Sprintf("  read %q by \"cat\"\nsandbox-sidecar:     what would allow it: %s\n", file, allow)
		if !strings.Contains(harness.Unfold(string(out)), want) {
			t.Errorf("%s: no %q in\n%s", dir, want, out)
		}
		c = command(t, w, "allow", "--project", w.Project)
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(harness.Unfold(string(out)), file) {
			t.Errorf("control: %v: %s", err, out)
		}
	}
}

// A terminal of the caller's does not get inside, also if only some streams are one:
// whatever runs there could keep it.
func TestJoin_KeepsTheTerminalOutside(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	run(e, "agent", "true")
	look := "for n in 0 1 2; do test -t $n && echo terminal $n; readlink /proc/self/fd/$n; done; echo done >&2"
	for name, redirect := range map[string]string{
		"input": "| cat", "output": "</dev/null", "errors": "</dev/null | cat",
	} {
		c := joining(t, e, harness.Machine{}, "sh", "-c", look)
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" ` + redirect, "sh"}, c.Args...)
		p := harness.StartTerminal(t, c)
		p.Await("done")
		p.Status()
		if screen := p.Screen.String(); strings.Contains(screen, "terminal") || strings.Contains(screen, "/dev/pts") {
			harness.Breach(t, "%s: %s", name, screen)
		}
	}
	p := harness.StartTerminal(t, exec.Command("sh", "-c", look))
	p.Await("terminal 0")
}

// What cannot be joined is refused with what to do, and nothing runs.
func TestJoin_Refused(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	own := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo on; exec sleep 1000"})
	own.Await("on")
	run(e, "agent", "true")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":   {[]string{"exec", "--join", "other", "--", "true"}, `no sandbox has the id or name "other"`},
		"its own":   {[]string{"exec", "--join", own.SessionID, "--", "true"}, "has a sandbox of its own"},
		"a setting": {[]string{"exec", "--join", "agent", "--mode", "off", "--", "true"}, "--mode does not change"},
	} {
		out, err := command(t, w, c.args...).CombinedOutput()
		if err == nil || !strings.Contains(harness.Unfold(string(out)), c.want) {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
	if out, err := command(t, w, "exec", "--join", "agent", "--", "true").CombinedOutput(); err != nil {
		t.Errorf("control: %v: %s", err, out)
	}
}

// A joined command may print into a file of the project: that is a change of the
// group's, which nobody asked the supervisor about.
func TestJoin_AFileAsOutputIsReviewed(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	makefile := w.ProjectPath("sub/Makefile")
	harness.Write(t, makefile, "all:\n")
	s := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: "/bin/bash", Args: []string{"-c", "echo ready; until test -e go; do :; done"},
		Group: "agent", Pipe: true,
	})
	s.Await("ready")
	out, err := os.OpenFile(makefile, os.O_WRONLY|os.O_APPEND, 0)
	harness.Must(t, err)
	defer out.Close()
	command := joining(t, e, harness.Machine{}, "echo", "evil:")
	command.Stdout = out
	harness.Must(t, command.Run())
	harness.Write(t, w.ProjectPath("go"), "")
	s.Exit()
	if review := s.Close(0).Review; len(review) != 1 {
		t.Errorf("review: %+v", review)
	}
}

// TestJoin_NoSignalIsLost has a signal arrive at any moment of the start: before the
// command runs it ends exec, and afterwards the command.
func TestJoin_NoSignalIsLost(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := harness.NewWorldOutsideDefaults(t)
	e := harness.Start(t, w, harness.Options{Settings: settings(nil)})
	run(e, "agent", "true")
	tries, step := 60, time.Millisecond // a start takes a few dozen
	if testing.Short() {
		tries, step = 30, 2*time.Millisecond
	}
	for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGTERM} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			t.Parallel()
			for i := range tries {
				c := joining(t, e, harness.Machine{}, "sleep", "1000")
				harness.Must(t, c.Start())
				ended := make(chan struct{})
				go func() { defer close(ended); _ = c.Wait() }()
				time.Sleep(time.Duration(i) * step) // the moment is what is tried; nothing is waited for
				_ = c.Process.Signal(signal)
				if !deadline.New(harness.Timeout).Wait(ended) {
					t.Errorf("after %v it was lost", time.Duration(i)*step)
					_ = c.Process.Kill()
					<-ended
				}
			}
		})
	}
}
