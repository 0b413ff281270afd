//go:build linux

package tests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// watchers ask, as language servers do, whether the process EDITOR exists, and
// end with "gone" when it does not. Before, they ask about STRANGER, and send
// the editor a real signal.
var watchers = map[string]struct{ program, script string }{
	// vscode-languageserver, and so the servers of JSON, YAML, Bash and Python
	"node": {"/usr/bin/node", `
const ask = (pid, number) => { try { process.kill(pid, number); return "lives" } catch (e) { return e.code } }
console.log("editor", ask(EDITOR, 0), "stranger", ask(STRANGER, 0), "sent", ask(EDITOR, "SIGTERM"))
const timer = setInterval(() => { if (ask(EDITOR, 0) != "lives") { clearInterval(timer); console.log("gone", ask(EDITOR, 0)) } }, 50)`},
	// psutil, pylsp
	"python": {"/usr/bin/python3", `
import errno, os, time
def ask(pid, number):
    try: os.kill(pid, number); return "lives"
    except OSError as e: return errno.errorcode[e.errno]
print("editor", ask(EDITOR, 0), "stranger", ask(STRANGER, 0), "sent", ask(EDITOR, 15), flush=True)
while ask(EDITOR, 0) == "lives": time.sleep(0.05)
print("gone", ask(EDITOR, 0), flush=True)`},
	// os.Process.Signal of Go, and so gopls
	"by descriptor": {"/usr/bin/python3", `
import errno, os, signal, time
handles = {pid: os.pidfd_open(pid) for pid in (EDITOR, STRANGER)}
def ask(pid, number):
    try: signal.pidfd_send_signal(handles[pid], number); return "lives"
    except OSError as e: return errno.errorcode[e.errno]
print("editor", ask(EDITOR, 0), "stranger", ask(STRANGER, 0), "sent", ask(EDITOR, 15), flush=True)
while ask(EDITOR, 0) == "lives": time.sleep(0.05)
print("gone", ask(EDITOR, 0), flush=True)`},
	// Eclipse's server for Java starts "kill -0"
	"shell": {"/bin/sh", `
ask() { if said=$(LC_ALL=C kill "$1" "$2" 2>&1); then echo lives; else case $said in *"not permitted"*) echo EPERM;; *) echo ESRCH;; esac; fi; }
echo "editor $(ask -0 EDITOR) stranger $(ask -0 STRANGER) sent $(ask -TERM EDITOR)"
while [ "$(ask -0 EDITOR)" = lives ]; do sleep 0.05; done
echo "gone $(ask -0 EDITOR)"`},
}

// TestEditorLives asks in a session whether its editor exists, which is an
// ancestor of the session, and whether another process of the user does.
func TestEditorLives(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	})
	blocks := map[string]harness.Sandbox{
		"reported": nil, "unreported": {"on_denied": "ignore"}, "asked": {"on_denied": "ask"},
	}
	for i, name := range slices.Sorted(maps.Keys(watchers)) {
		watcher := watchers[name]
		for j, settings := range slices.Sorted(maps.Keys(blocks)) {
			if !harness.Turn(t, i+j, len(blocks)) {
				continue
			}
			t.Run(name+" "+settings, func(t *testing.T) {
				t.Parallel()
				harness.WithAndWithoutCgroups(t, func(t *testing.T, wrap func(*exec.Cmd)) {
					w := harness.NewWorld(t)
					harness.Write(t, w.UserSettings(), harness.Defaults(blocks[settings]))
					editorEnds(t, w, wrap, watcher.program, watcher.script, stranger.Process.Pid)
				})
			})
		}
	}
}

// In an editor's terminal and tool, too, its process exists, and others do not.
func TestEditorLives_InItsOwnSessions(t *testing.T) {
	t.Parallel()
	harness.Require(t, "signals")
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Defaults(nil)})
	for name, watcher := range watchers {
		harness.RequirePrograms(t, filepath.Base(watcher.program))
		flag := "-c"
		if strings.HasSuffix(watcher.program, "/node") {
			flag = "-e"
		}
		stranger := exec.Command("sleep", "1000")
		harness.Must(t, stranger.Start())
		t.Cleanup(func() {
			_ = stranger.Process.Kill()
			_ = stranger.Wait()
		})
		pids := []string{"EDITOR", strconv.Itoa(os.Getpid()), "STRANGER", strconv.Itoa(stranger.Process.Pid)}
		script := strings.NewReplacer(pids...).Replace(watcher.script)
		for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
			session := e.Spawn(protocol.SpawnParams{
				Kind: kind, Command: watcher.program, Args: []string{flag, script},
			})
			said := session.Await(`editor (\w+) stranger (\w+) sent (\w+)`)
			if got := said[1:]; got[0] != "lives" || got[1] == "lives" || got[2] == "lives" {
				harness.Breach(t, "%s, %s: the editor, a stranger, a signal: %q", kind, name, got)
			}
			session.Close(0)
		}
	}
}

// editorEnds starts an editor that starts a watcher by exec, and kills the
// editor.
func editorEnds(
	t *testing.T, w *harness.World, wrap func(*exec.Cmd), program, script string, stranger int,
) {
	t.Helper()
	harness.RequirePrograms(t, program[strings.LastIndexByte(program, '/')+1:])
	flag := "-c"
	if strings.HasSuffix(program, "/node") {
		flag = "-e"
	}
	script = strings.ReplaceAll(script, "STRANGER", strconv.Itoa(stranger))
	// The editor has a child between itself and exec, as editors have helpers.
	const editor = `echo "I am $$"; (script=$(printf %s "$4" | sed "s/EDITOR/$PPID_OF/g"); "$1" exec -- "$2" "$3" "$script"; echo over) & wait`
	command := exec.Command("/bin/sh", "-c", strings.ReplaceAll(editor, "$PPID_OF", "$$"), "sh",
		harness.Binary(t), program, flag, script)
	command.Dir, command.Env = w.Project, harness.Environ(w)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	wrap(command)
	var out harness.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		_ = command.Wait() // an editor that nobody has waited for still exists
	}()
	t.Cleanup(func() {
		_ = unix.Kill(-command.Process.Pid, unix.SIGKILL) // the rest of its group
		<-waited
	})
	out.Await(t, `sent \w+`)
	var pid int
	text := out.String()
	if _, err := fmt.Sscanf(text[strings.Index(text, "I am"):], "I am %d", &pid); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "editor lives stranger EPERM sent EPERM") {
		t.Errorf("wrong answers: %s", text)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		t.Fatalf("the editor was ended: %v", err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	out.Await(t, "gone ESRCH")
}
