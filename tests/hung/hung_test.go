//go:build linux

package hung

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Whatever the hanging file system holds, and however the sidecar ends:
// sessions elsewhere start, run and close, the list of sessions is answered,
// and the sidecar ends in time with all of its sessions.
func TestNoOtherRequestWaits(t *testing.T) {
	t.Parallel()
	for i, at := range places {
		if !harness.Turn(t, i, 2) {
			continue
		}
		how := []string{"end of stdin", "SIGTERM", "exit"}[i%3]
		t.Run(at.name+", "+how, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, at, false, nil)
			s.works()
			kept := s.Spawn(protocol.SpawnParams{
				Kind: protocol.Terminal, Cwd: s.healthy, ProjectDir: s.healthy,
				Command: "echo on; read line",
			})
			beside := s.Spawn(protocol.SpawnParams{
				Kind: protocol.Terminal, Cwd: s.World.Project, ProjectDir: s.World.Project,
				Command: "echo on; read line",
			})
			kept.Await("on")
			beside.Await("on")

			s.fuse.Hang()
			answered := make(chan error, 1)
			go func() {
				_, err := harness.Try(s.Editor, protocol.Spawn, s.needs())
				answered <- err
			}()
			s.fuse.AwaitHeld()
			s.repeated("list", func() {
				if got := len(harness.Call(s.Editor, protocol.List, protocol.Empty{}).Sessions); got < 2 {
					t.Errorf("%d sessions are listed, expected 2 or more", got)
				}
			})
			s.timed("the first terminal elsewhere", func() { s.health(protocol.Terminal) })
			s.repeated("another terminal elsewhere", func() { s.health(protocol.Terminal) })
			s.repeated("a tool elsewhere", func() { s.health(protocol.Tool) })
			s.timed("the answer to who needs it", func() {
				err := <-answered
				code, text := codeOf(err)
				switch {
				case !at.refused && err != nil:
					t.Errorf("a session that can do without it: %v", err)
				case at.refused && (code != protocol.CodeSpawnFailed || !strings.Contains(text, at.named(s.World)) ||
					!strings.Contains(text, "does not answer")):
					t.Errorf("a session that needs it is refused with %d, %q", code, text)
				}
			})
			s.repeated("list, again", func() {
				for _, listed := range harness.Call(s.Editor, protocol.List, protocol.Empty{}).Sessions {
					if listed.SessionID == beside.SessionID && listed.Stale && at.refused && at.cwd == nil {
						t.Error("a session counts as stale because nobody can say what another would get")
					}
				}
			})
			s.timed("close of a session beside it", func() {
				if closed := beside.Close(0); closed.Remaining != 0 || len(closed.Review) != 0 {
					t.Errorf("closed with %d left, and findings that nobody can have: %+v", closed.Remaining,
						closed.Review)
				}
			})
			if held := s.fuse.Held(); held > 16 {
				t.Errorf("%d requests wait at once", held)
			}
			s.end(how)
			harness.Eventually(t, "the session that was kept has ended", func() bool {
				return !harness.Alive(kept.PID)
			})
			t.Logf("the longest: %d ms", s.longest.Milliseconds())
		})
	}
}

// The sidecar's end does not wait for requests that still wait for the file
// system.
func TestTheEndComesAtOnce(t *testing.T) {
	t.Parallel()
	for i, at := range places {
		// These are the places whose turn it is not in TestNoOtherRequestWaits.
		if !harness.Turn(t, i+1, 2) {
			continue
		}
		how := []string{"exit", "end of stdin", "SIGTERM"}[i%3]
		t.Run(at.name+", "+how, func(t *testing.T) {
			t.Parallel()
			harness.Quick(t, how, atOnce, func() time.Duration {
				s := newScene(t, at, false, nil)
				kept := s.Spawn(protocol.SpawnParams{
					Kind: protocol.Terminal, Cwd: s.healthy, ProjectDir: s.healthy,
					Command: "echo on; read line",
				})
				kept.Await("on")
				s.fuse.Hang()
				// The file system does not answer it.
				go func() { _, _ = harness.Try(s.Editor, protocol.Spawn, s.needs()) }()
				s.fuse.AwaitHeld()
				took := s.end(how)
				harness.Eventually(t, "the session that was kept has ended", func() bool {
					return !harness.Alive(kept.PID)
				})
				return took
			})
		})
	}
}

// If the file system answers again, everything works again.
func TestItWorksAgain(t *testing.T) {
	t.Parallel()
	for i, at := range places {
		if !harness.Turn(t, i+1, 2) {
			continue
		}
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, at, false, nil)
			s.works()
			s.fuse.Hang()
			_, err := harness.Try(s.Editor, protocol.Spawn, s.needs())
			if at.refused != (err != nil) {
				t.Errorf("while it hangs: %v", err)
			}
			s.fuse.Answer()
			harness.Eventually(t, "a session that needs it starts", func() bool {
				result, err := harness.Try(s.Editor, protocol.Spawn, s.needs())
				if err != nil {
					return false
				}
				session := s.Session(result)
				session.Exit()
				return strings.Contains(session.Output(), s.at.printed)
			})
		})
	}
}

// place finds one by its name.
func place(t *testing.T, name string) where {
	t.Helper()
	for _, at := range places {
		if at.name == name {
			return at
		}
	}
	t.Fatalf("no place %q", name)
	panic("unreachable")
}

// The user's settings are on a file system that hangs before the sidecar
// starts. Nothing is known about them: tools are refused, terminals start with
// a warning. Once the file system answers, the settings apply.
func TestSettingsThatNeverAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(t, place(t, "the user's settings"), true, nil)
	tool := protocol.SpawnParams{Kind: protocol.Tool, Cwd: s.healthy, Command: "true"}
	s.timed("a tool", func() {
		_, err := harness.Try(s.Editor, protocol.Spawn, tool)
		if code, text := codeOf(err); code != protocol.CodeSettingsInvalid ||
			!strings.Contains(text, "does not answer") {
			t.Errorf("a tool is answered %d, %q", code, text)
		}
	})
	s.repeated("a terminal", func() {
		session := s.Spawn(protocol.SpawnParams{Kind: protocol.Terminal, Cwd: s.healthy, Command: "true"})
		session.Exit()
		if text := strings.Join(session.Sandbox.Warnings, "\n"); !strings.Contains(text, "does not answer") {
			t.Errorf("a terminal starts with the warnings %q", text)
		}
		session.Close(0)
	})
	s.fuse.Answer()
	harness.Eventually(t, "a tool starts", func() bool {
		result, err := harness.Try(s.Editor, protocol.Spawn, tool)
		return err == nil && s.Session(result).Exit().ExitCode != nil
	})
	s.fuse.Hang()
	s.end("SIGTERM")
}

// The policies of projects elsewhere, and so their ids, are the same while the
// directory of histories and links is silent. A terminal there has no history.
func TestPoliciesStayTheSame(t *testing.T) {
	t.Parallel()
	s := newScene(t, where{
		mount: func(w *harness.World) string { return w.HomePath(".local") },
		files: map[string]string{"share/sandbox-sidecar/shells/bash": "", "state/other": ""},
		env: func(w *harness.World) []string {
			return []string{"XDG_RUNTIME_DIR=" + filepath.Join(w.Outside, "runtime")}
		},
		prepare: func(t *testing.T, w *harness.World) {
			harness.Must(t, os.Mkdir(filepath.Join(w.Outside, "runtime"), 0o700))
		},
	}, false, nil)
	ask := func(kind protocol.Kind) protocol.PolicyGetResult {
		return harness.Call(s.Editor, protocol.PolicyGet, protocol.PolicyGetParams{ProjectDir: s.healthy, Kind: kind})
	}
	kinds := []protocol.Kind{protocol.Terminal, protocol.Tool}
	known := map[protocol.Kind]protocol.PolicyGetResult{}
	for _, kind := range kinds {
		known[kind] = ask(kind)
		has := func(suffix string) bool {
			return slices.ContainsFunc(known[kind].Policy.Rules, func(r protocol.PolicyRule) bool {
				return strings.HasSuffix(r.Path, suffix)
			})
		}
		if program := harness.Binary(t); !has(program) || has("/history/start") != (kind == protocol.Terminal) {
			t.Errorf("%s: this compares nothing: %+v", kind, known[kind].Policy.Rules)
		}
	}
	s.fuse.Hang()
	for _, kind := range kinds {
		if now := ask(kind); now.PolicyID != known[kind].PolicyID {
			t.Errorf("%s: another id, with %+v, and before with %+v", kind, now.Policy.Rules, known[kind].Policy.Rules)
		}
	}
	s.health(protocol.Terminal)
	s.fuse.Answer()
	for _, kind := range kinds {
		harness.Eventually(t, "the same id", func() bool { return ask(kind).PolicyID == known[kind].PolicyID })
	}
}

// A process that waits for a file system cannot be killed. Closing its session
// reports that in time, and neither another session nor the sidecar's end waits
// for it. When the file system answers, the process dies before it does
// anything else.
func TestProcessesThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	everyEnd(t, 0, "a granted path", func(t *testing.T, s *scene, how string) {
		s.works()
		written := filepath.Join(s.World.Project, "written")
		params := s.needs()
		params.Command = "read line; cat ../outside/hung/data; echo alive >written"
		closed, left := s.Spawn(params), s.Spawn(params)
		s.fuse.Hang()
		for _, session := range []*harness.Session{closed, left} {
			session.Type("go\n")
		}
		harness.Eventually(t, "both wait", func() bool { return waits(closed.PID) && waits(left.PID) })
		s.timed("close", func() {
			if result := closed.Close(0); result.Remaining == 0 {
				t.Errorf("it is said that nobody is left: %+v", result)
			}
		})
		s.repeated("a terminal elsewhere", func() { s.health(protocol.Terminal) })
		s.end(how)
		s.fuse.Answer()
		harness.Eventually(t, "both are dead", func() bool {
			return !harness.Alive(closed.PID) && !harness.Alive(left.PID)
		})
		if _, err := os.Stat(written); err == nil {
			t.Error("a session that was killed went on")
		}
		t.Logf("the longest: %d ms", s.longest.Milliseconds())
	})
}

// A granted path answers the sidecar, but not the stage that is to confine a
// session with it. Only that session waits. Closing it while it starts is
// answered in time, another one that needs the path is refused in the end, and
// the sidecar's end waits for neither. Their programs are never executed.
func TestAStageThatCannotBeKilled(t *testing.T) {
	t.Parallel()
	everyEnd(t, 1, "the project", func(t *testing.T, s *scene, how string) {
		s.works()
		executed := filepath.Join(s.healthy, "executed")
		params := s.needs()
		params.Shell = &protocol.Shell{Program: "/bin/touch", Args: []string{executed}}
		params.SessionID, params.Command = uuid.NewString(), ""
		spawn := func() chan error {
			answered := make(chan error, 1)
			go func() {
				_, err := harness.Try(s.Editor, protocol.Spawn, params)
				answered <- err
			}()
			return answered
		}
		stages := &callers{}
		s.fuse.HangFor(stages.isStage)
		closed := spawn()
		s.fuse.AwaitHeld()
		s.repeated("list", func() { harness.Call(s.Editor, protocol.List, protocol.Empty{}) })
		s.timed("the first terminal elsewhere", func() { s.health(protocol.Terminal) })
		s.repeated("another terminal elsewhere", func() { s.health(protocol.Terminal) })
		s.repeated("a tool elsewhere", func() { s.health(protocol.Tool) })
		s.timed("close of the session that starts", func() {
			_, err := harness.Try(s.Editor, protocol.Close,
				protocol.CloseParams{SessionID: params.SessionID, GraceMs: new(int)})
			if code, text := codeOf(err); code != protocol.CodeSessionNotFound {
				t.Errorf("close is answered with %d, %q", code, text)
			}
			if code, text := codeOf(<-closed); code != protocol.CodeSpawnFailed {
				t.Errorf("the spawn is answered with %d, %q", code, text)
			}
		})
		params.SessionID = uuid.NewString()
		held := s.fuse.Held()
		left := spawn()
		harness.Eventually(t, "another stage waits", func() bool { return s.fuse.Held() > held })
		s.repeated("a terminal elsewhere, again", func() { s.health(protocol.Terminal) })
		s.end(how)
		if err := <-left; err == nil {
			t.Error("a session started that cannot be confined")
		}
		s.fuse.Answer()
		harness.Eventually(t, "no stage is left", func() bool { return !stages.alive() })
		if _, err := os.Stat(executed); err == nil {
			t.Error("a program was executed")
		}
		t.Logf("the longest: %d ms", s.longest.Milliseconds())
	})
}

// callers are the threads of stages that a file system does not answer. Its
// methods are safe for concurrent use.
type callers struct {
	mu      sync.Mutex // guards threads
	threads []int
}

// isStage reports whether a thread belongs to a stage that has executed
// nothing yet, and notes it.
func (c *callers) isStage(thread int) bool {
	cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", thread))
	args := strings.Split(string(cmdline), "\x00")
	if len(args) < 2 || args[1] != "stage" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.threads = append(c.threads, thread)
	return true
}

func (c *callers) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.threads, harness.Alive)
}

// waits reports whether a process has a child that waits for the answer of a
// FUSE server. Until a signal comes, the child's state is interruptible sleep.
func waits(pid int) bool {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(children)) {
		where, _ := os.ReadFile("/proc/" + child + "/wchan")
		if string(where) == "request_wait_answer" {
			return err == nil
		}
	}
	return false
}

// A command line in a hanging directory ends by itself, or by the interrupt
// key.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	harness.Write(t, w.UserSettings(), harness.Settings(nil))
	f := harness.NewFUSE(t, w.Project, map[string]string{"hello": "from inside\n"})
	start := func(args ...string) *exec.Cmd {
		command := exec.Command(harness.Binary(t), args...)
		command.Env, command.Dir = harness.Environ(w), "/"
		f.Wrap(command)
		return command
	}
	if out, err := start("exec", "--project", w.Project, "--", "/bin/cat",
		w.Project+"/hello").CombinedOutput(); err != nil || !strings.Contains(string(out), "from inside") {
		t.Fatalf("while it answers: %v, %s", err, out)
	}
	f.Hang()
	for _, args := range [][]string{
		{"exec", "--project", w.Project, "--", "/bin/true"},
		{"explain", "--project", w.Project, "read", w.Project + "/hello"},
		{"policy", "--project", w.Project},
		{"trust", "--show", w.Project},
	} {
		command, out := start(args...), &harness.Buffer{}
		command.Stdout, command.Stderr = out, out
		harness.Must(t, command.Start())
		var err error
		took := deadline.Took(command.Process.Pid, func() { err = command.Wait() })
		text := harness.Unfold(out.String())
		if err == nil || took > once || !strings.Contains(text, "does not answer") {
			t.Errorf("%s: %v after %s, %s", args[0], err, took, out)
		}
	}
	harness.Quick(t, "the end after an interrupt", atOnce, func() time.Duration {
		command := start("exec", "--project", w.Project, "--", "/bin/true")
		held := f.Held()
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, "it waits", func() bool { return f.Held() > held })
		return deadline.Took(command.Process.Pid, func() {
			harness.Must(t, command.Process.Signal(os.Interrupt))
			if err := command.Wait(); err == nil {
				t.Error("it succeeds after the interrupt")
			}
		})
	})
}
