//go:build linux

package shells

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/control"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// flat undoes the folding of lines.
func flat(out string) string { return strings.Join(strings.Fields(out), " ") }

// saysNew reports whether a command has said that its sandbox is new, and why.
func saysNew(out, why string) bool {
	return strings.Contains(flat(out), "note: new sandbox, without the old /tmp and processes: "+why)
}

// stateDir is where sockets and places to meet are.
func (w *world) stateDir() string { return w.HomePath(".local/state/sandbox-sidecar/run") }

// keepers are the processes that keep a sandbox.
func (w *world) keepers() (pids []int) {
	w.t.Helper()
	found, silent := control.List([]string{w.stateDir()})
	for _, err := range silent {
		w.t.Error(err)
	}
	for _, one := range found {
		if slices.ContainsFunc(one.Sessions, func(s control.Session) bool { return s.Shared }) {
			pids = append(pids, one.PID)
		}
	}
	return pids
}

// The first command in a new sandbox says so, and why, if the agent had another one
// before. Nothing is said by an agent's first command, and by later ones in the same
// sandbox.
func TestTogether_ANewSandboxSaysWhy(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	granted := func(w *world) string { return filepath.Join(w.Outside, "granted") }
	for why, change := range map[string]func(*world, *agent){
		"the settings, or what they protect here, have changed": func(w *world, _ *agent) {
			harness.Write(t, w.UserSettings(), harness.Defaults(nil))
		},
		"this is another project": func(w *world, a *agent) {
			dir := filepath.Join(w.Outside, "project")
			harness.Must(t, os.Mkdir(dir, 0o700))
			a.must("@cd '" + dir + "'")
		},
		"a path or agent has changed": func(w *world, _ *agent) {
			harness.Must(t, os.Rename(granted(w), granted(w)+".old"))
			harness.Must(t, os.Mkdir(granted(w), 0o700))
		},
		"the old one has ended": func(w *world, _ *agent) {
			keeper := w.keeper()
			harness.Must(t, unix.Kill(keeper, unix.SIGKILL))
			harness.Eventually(t, "the keeper has ended", func() bool { return !harness.Alive(keeper) })
		},
		"its limits or rights are others": func(_ *world, a *agent) { a.must("@umask 027") },
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(nil))
			harness.Must(t, os.Mkdir(granted(w), 0o700))
			harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{
				"additional_read_only_paths": []string{granted(w)},
			}))
			a := w.agent()
			for range 2 {
				if out := a.must("echo here"); out != "here" {
					t.Errorf("in the first sandbox: %q", out)
				}
			}
			change(w, a)
			if out := a.must("echo here"); !saysNew(out, why) || !strings.HasSuffix(out, "\nhere") {
				t.Errorf("in the next one: %q", out)
			}
			if out := a.must("echo here"); out != "here" {
				t.Errorf("once more: %q", out)
			}
			if out := w.agent().must("echo here"); out != "here" {
				t.Errorf("another agent's first command: %q", out)
			}
		})
	}
}

// Where the keeper does not answer, each command has a sandbox of its own, and says
// why, as what runs in the shared one is missed. The next ones do not ask again for
// a while. A keeper that answers again by then is used.
func TestTogether_AKeeperThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	pid := pidOf(t, a.must("sleep 1000 >/dev/null 2>&1 & echo $!"))
	keeper := w.keeper()
	harness.Stop(t, keeper)
	t.Cleanup(func() { _ = unix.Kill(keeper, unix.SIGCONT) })
	const silent = "the process that keeps it does not answer"
	if out := a.must("echo here"); strings.Count(flat(out), "the agent's commands share no sandbox: "+silent) != 1 ||
		!strings.HasSuffix(out, "\nhere") {
		t.Errorf("it says %q", out)
	}
	if out, status := a.run(fmt.Sprintf("kill -0 %d", pid)); status == 0 {
		harness.Breach(t, "a sandbox of its own reaches the process of another: %s", out)
	}
	harness.Must(t, unix.Kill(keeper, unix.SIGCONT))
	if out := a.must("echo here"); strings.Count(flat(out), "the command has a sandbox of its own: "+silent) != 1 ||
		!strings.HasSuffix(out, "\nhere") {
		t.Errorf("the next command says %q", out)
	}
	failures, err := filepath.Glob(filepath.Join(w.stateDir(), "shared", "*.broken"))
	harness.Must(t, err)
	if len(failures) != 1 {
		t.Fatalf("failures are noted in %q", failures)
	}
	long := time.Now().Add(-time.Hour)
	harness.Must(t, os.Chtimes(failures[0], long, long))
	if out := a.must(fmt.Sprintf("kill -0 %d", pid)); out != "" {
		t.Errorf("after a while: %q", out)
	}
	if _, err := os.Lstat(failures[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failure is still noted: %v", err)
	}
}

// What is no file where commands meet is said once, too.
func TestTogether_APlaceThatCannotBeReadIsSaidOnce(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	a := w.agent()
	a.must("true")
	place := w.place()
	harness.Must(t, os.Remove(place))
	harness.Must(t, os.Mkdir(place, 0o700))
	for i, want := range []int{1, 0, 0} {
		if out := a.must("echo here"); strings.Count(flat(out), "share no sandbox") != want {
			t.Errorf("command %d says %q", i, out)
		}
	}
}

// A command whose agent is killed before it has joined the sandbox does not run: it
// would run on alone. If the keeper is killed instead, it runs.
func TestTogether_AnAgentThatEndsFirst(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	for name, agentEnds := range map[string]bool{"the agent": true, "the keeper": false} {
		a := w.agent()
		a.must("true")
		keeper := w.keeper()
		harness.Stop(t, keeper)
		t.Cleanup(func() { _ = unix.Kill(keeper, unix.SIGCONT) })
		token := fmt.Sprintf("token-%d-%v-", os.Getpid(), agentEnds)
		_, err := fmt.Fprintln(a.to, ": "+token+"; echo x >>ran")
		harness.Must(t, err)
		harness.Eventually(t, "a link waits for the keeper", func() bool {
			return slices.ContainsFunc(harness.Find(token), hasSocket)
		})
		if agentEnds {
			a.kill()
			harness.Must(t, unix.Kill(keeper, unix.SIGCONT))
		} else {
			harness.Must(t, unix.Kill(keeper, unix.SIGKILL))
		}
		harness.Eventually(t, "the link has ended", func() bool { return len(harness.Find(token)) == 0 })
		if ran := harness.Read(t, w.ProjectPath("ran")); (ran == "") != agentEnds {
			t.Errorf("%s is killed: the command has left %q", name, ran)
		}
		_ = os.Remove(w.ProjectPath("ran"))
		a.kill()
		w.mustBeQuiet()
	}
}

// hasSocket reports whether a process has a socket open.
func hasSocket(pid int) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(files, func(file string) bool {
		target, err := os.Readlink(file)
		return err == nil && strings.HasPrefix(target, "socket:")
	})
}

// Nobody becomes a keeper by typing: that needs the lock of a place.
func TestTogether_NobodyTypesAKeeper(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Defaults(nil))
	file, err := os.Create(filepath.Join(t.TempDir(), "4.5.6.name"))
	harness.Must(t, err)
	defer file.Close()
	for _, args := range [][]string{
		{"keep", "x"},
		{"keep", "x", "detached"},
		{"keep", "5", "6", "4.5.6.name"},
		{"keep", "5", "6", "4.5.6.name", "detached"},
	} {
		command := w.command(harness.Binary(t), args...)
		command.ExtraFiles = []*os.File{file}
		out, err := command.CombinedOutput()
		if command.ProcessState.ExitCode() != 2 ||
			!strings.Contains(harness.Unfold(string(out)), `unknown command "keep"`) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
}

// place is the one file by which commands meet.
func (w *world) place() string {
	w.t.Helper()
	places, err := filepath.Glob(filepath.Join(w.stateDir(), "shared", "*[0-9a-f]"))
	harness.Must(w.t, err)
	if len(places) != 1 {
		w.t.Fatalf("commands meet at %q", places)
	}
	return places[0]
}

// Once an agent's commands have a sandbox of other settings, the older one of the
// same project ends, as soon as nothing runs there. That of another agent stays.
func TestTogether_AnOlderSandboxEnds(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(nil))
	other := w.agent()
	other.must("true")
	others := w.keeper()
	a := w.agent()
	pid := pidOf(t, a.must("sleep 1000 >/dev/null 2>&1 & echo $!"))
	kept := slices.DeleteFunc(w.keepers(), func(pid int) bool { return pid == others })
	if len(kept) != 1 {
		t.Fatalf("the agent's sandbox is kept by %v", kept)
	}
	harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
	a.must("true")
	if !harness.Alive(pid) || !harness.Alive(kept[0]) {
		t.Error("a process in the background has ended with the change of the settings")
	}
	harness.Must(t, unix.Kill(pid, unix.SIGKILL))
	harness.Eventually(t, "the older sandbox ends", func() bool { return !harness.Alive(kept[0]) })
	left := w.keepers()
	if len(left) != 2 || !slices.Contains(left, others) {
		t.Fatalf("sandboxes are kept by %v, and that of the other agent by %d", left, others)
	}
	newer := slices.DeleteFunc(left, func(pid int) bool { return pid == others })[0]
	harness.Write(t, w.UserSettings(), harness.Defaults(nil))
	if out := a.must("true"); !saysNew(out, "other settings came since") {
		t.Errorf("with the old settings again: %q", out)
	}
	harness.Eventually(t, "the sandbox of the other settings ends", func() bool { return !harness.Alive(newer) })
	a.kill()
	other.kill()
	w.mustBeQuiet()
}

// The last command in a sandbox that a newer one replaces says how it has ended, and
// what it was refused.
func TestTogether_TheLastCommandOfAnOlderSandboxSaysAll(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	harness.Require(t, "filesystem")
	for range 3 {
		w := newWorld(t, harness.Defaults(nil))
		var refused []string
		for i := range 12 {
			refused = append(refused, w.OutsidePath(fmt.Sprintf("secret-%d", i)))
			harness.Write(t, refused[i], "secret")
		}
		said, started, goOn := w.OutsidePath("said"), w.ProjectPath("started"), w.ProjectPath("go-on")
		harness.Must(t, unix.Mkfifo(goOn, 0o600))
		a := w.agent()
		alone, _ := a.run("cat " + refused[0])
		reports := strings.Contains(flat(alone), refused[0]+`" by "cat"`) // as the kernel does
		a.must(`@("$LINK" -c 'touch started; read line <go-on; cat ` + strings.Join(refused, " ") +
			`; exit 3' </dev/null >` + said + ` 2>&1; echo "status=$?" >>` + said + `) & true`)
		harness.Eventually(t, "the command runs", func() bool {
			_, err := os.Lstat(started)
			return err == nil
		})
		kept := w.keeper()
		harness.Write(t, w.UserSettings(), harness.Defaults(harness.Sandbox{"allow_network": false}))
		a.must("true")
		if !harness.Alive(kept) {
			t.Fatal("the sandbox has ended under its command")
		}
		harness.Write(t, goOn, "\n")
		var text string
		harness.Eventually(t, "it has ended", func() bool {
			text = flat(harness.Read(t, said))
			return strings.Contains(text, "status=")
		})
		if !strings.Contains(text, "status=3") || strings.Contains(text, "sandbox has ended") ||
			strings.Contains(text, refused[0]+`" by "cat"`) != reports {
			t.Error(text)
		}
		harness.Eventually(t, "the older sandbox ends", func() bool { return !harness.Alive(kept) })
	}
}

// A trail that cannot be written is said by each command, as without sharing.
func TestTogether_ATrailThatIsLost(t *testing.T) {
	t.Parallel()
	harness.RequireSandbox(t)
	w := newWorld(t, harness.Defaults(harness.Sandbox{"audit": "file"}))
	dir := w.HomePath(".local/state/sandbox-sidecar/audit")
	harness.Must(t, os.MkdirAll(dir, 0o700))
	harness.Must(t, os.Symlink(filepath.Join(w.Outside, "target"), filepath.Join(dir, "audit.jsonl")))
	for name, a := range map[string]*agent{"together": w.agent(), "alone": w.agent("SANDBOX_GROUP_OWNER=own")} {
		for range 2 {
			if out := a.must("echo here"); strings.Count(flat(out), "the audit trail loses lines") != 1 {
				t.Errorf("%s: %q", name, out)
			}
		}
	}
	harness.Must(t, os.Remove(filepath.Join(dir, "audit.jsonl")))
	a := w.agent()
	if out := a.must("echo here"); out != "here" {
		t.Errorf("control: %q", out)
	}
}

// What is changed in the background after an agent's last command is in the audit
// trail, or in the log if there is none.
func TestTogether_TheRestIsReviewed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for name, settings := range map[string]harness.Sandbox{"log": nil, "trail": {"audit": "file"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, harness.Defaults(settings))
			a := w.agent()
			a.must("(until test -e go; do :; done; echo all: >Makefile; touch over) >/dev/null 2>&1 & true")
			harness.Write(t, w.ProjectPath("go"), "")
			harness.Eventually(t, "the background process has written", func() bool {
				_, err := os.Lstat(w.ProjectPath("over"))
				return err == nil
			})
			a.kill()
			w.mustBeQuiet()
			reviewed := func(file string) func() bool {
				names := func(line string) bool { // of the change, not of the command
					return strings.Contains(line, "Makefile") && !strings.Contains(line, `"spawn"`)
				}
				return func() bool {
					return slices.ContainsFunc(strings.Split(harness.Read(t, w.HomePath(file)), "\n"), names)
				}
			}
			const log = ".local/state/sandbox-sidecar/keeper.log"
			if name == "log" {
				harness.Eventually(t, "the log names it", reviewed(log))
				return
			}
			harness.Eventually(t, "the trail names it", reviewed(".local/state/sandbox-sidecar/audit/audit.jsonl"))
			if reviewed(log)() {
				t.Errorf("the log names it, too: %s", harness.Read(t, w.HomePath(log)))
			}
		})
	}
}
