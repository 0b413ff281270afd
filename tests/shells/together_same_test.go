//go:build linux

package shells

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// An agent that ignores signals, as after nohup, has one sandbox for its commands.
func TestTogether_AlsoIfTheAgentIgnoresSignals(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if !harness.Namespaces(t) {
		return // /tmp is shared there, as the reply says
	}
	for name, ignored := range map[string]string{
		"nothing": "", "hangup": "HUP", "both": "HUP INT", "others": "USR1 ALRM",
	} {
		w := newWorld(t, harness.Defaults(nil))
		a := w.agentUnder(func(command *exec.Cmd) {
			if ignored != "" {
				command.Args = append([]string{"/bin/bash", "-c", `trap '' ` + ignored + `; exec "$@"`, "bash"},
					command.Args...)
			}
		})
		a.must("echo of-agent >/tmp/note")
		if out, _ := a.run("cat /tmp/note"); out != "of-agent" {
			t.Errorf("%s: %q", name, out)
		}
	}
}

// A new file often gets the number of one that was removed outside. The mount that
// hid or protected that one is gone, so the next command has another sandbox.
func TestTogether_AFileThatTakesANumberIsAnother(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	harness.Require(t, "hidden_paths")
	w := newWorld(t, harness.Defaults(harness.Sandbox{"hidden_paths": []string{"**/.env"}}))
	file := w.ProjectPath(".env")
	harness.Write(t, file, "secret one")
	inode := func() uint64 {
		info, err := os.Lstat(file)
		harness.Must(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	a := w.agent()
	if out, _ := a.run("cat .env"); strings.Contains(out, "secret") {
		harness.Breach(t, "control: a hidden file is read: %q", out)
	}
	for round := range 8 {
		before := inode()
		harness.Must(t, os.Remove(file))
		harness.Write(t, file, "secret two")
		if out, _ := a.run("cat .env"); strings.Contains(out, "secret") {
			harness.Breach(t, "round %d, the same number %t: a hidden file is read: %q", round, inode() == before, out)
		}
	}
}

// ps says that a command of a link is its agent's, not one of "exec --join".
func TestTogether_PsKnowsWhoseACommandIs(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	fifo := w.ProjectPath("go-on")
	harness.Must(t, unix.Mkfifo(fifo, 0o600))
	end, err := os.OpenFile(fifo, os.O_RDWR, 0)
	harness.Must(t, err)
	defer end.Close()
	a := w.agent()
	a.must("true")
	_, _, sandbox := w.kept()
	joined := func(want bool) (found bool) {
		out, _ := w.command(harness.Binary(t), "ps", "--json").Output()
		var list []control.Supervisor
		if json.Unmarshal(out, &list) != nil {
			return false
		}
		for _, s := range list {
			for _, session := range s.Sessions {
				found = found || session.Sandbox == sandbox && session.Joined == want
			}
		}
		return found
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = a.run("read line <go-on")
	}()
	harness.Eventually(t, "the agent's command is listed", func() bool { return joined(false) })
	if joined(true) {
		t.Error(`the agent's command is said to be one of "exec --join"`)
	}
	other := w.command(harness.Binary(t), "exec", "--join", sandbox, "--", "sh", "-c", "read line <go-on")
	harness.Must(t, other.Start())
	harness.Eventually(t, "control: one that joins is listed", func() bool { return joined(true) })
	_, err = end.WriteString("\n\n")
	harness.Must(t, err)
	<-done
	_ = other.Wait()
}

// An agent that works in many directories has not a sandbox for each for an hour.
// Those end that it has not used for the longest time, and none in which something
// runs.
func TestTogether_AnAgentHasNotManyIdleSandboxes(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	if !harness.Namespaces(t) {
		return // /tmp is shared there, as the reply says
	}
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	const most = 16
	in := func(name, line string) string {
		t.Helper()
		dir := w.ProjectPath(name)
		harness.Must(t, os.MkdirAll(dir, 0o755))
		a.must("@cd " + dir)
		return a.must(line)
	}
	in("busy", "sleep 1000 >/dev/null 2>&1 & echo busy >/tmp/note")
	in("unused", "echo unused >/tmp/note")
	in("used", "echo used >/tmp/note")
	for i := range most + 4 {
		name := "package" + strconv.Itoa(i)
		in(name, "echo "+name+" >/tmp/note")
		if out := in(name, "cat /tmp/note"); out != name {
			t.Fatalf("control: the commands in a directory share nothing: %q", out)
		}
		if out := in("used", "cat /tmp/note"); out != "used" {
			t.Fatalf("after %d others, a sandbox that was just used has ended: %q", i, out)
		}
	}
	harness.Eventually(t, "the others have ended", func() bool {
		found, _ := control.List([]string{w.stateDir()}) // one that ends just then is silent
		return len(found) <= most+1                      // with the busy one
	})
	if out := in("busy", "cat /tmp/note"); out != "busy" {
		t.Errorf("a sandbox in which something runs has ended: %q", out)
	}
	const why = "the agent has used 16 others since"
	if out := in("unused", "test ! -e /tmp/note"); !saysNew(out, why) {
		t.Errorf("control: one that was not used has not ended: %q", out)
	}
}
