package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/client"
	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// brood is a command line that leaves processes behind in every common way, then waits for a line and ends. Each prints its id.
const brood = `trap '' HUP TERM INT
sh -c 'trap "" HUP TERM; echo pid=$$; exec sleep 1001' &
setsid sh -c 'trap "" HUP TERM; echo pid=$$; exec sleep 1002' &
(setsid sh -c '(trap "" HUP TERM; setsid sh -c "echo pid=\$\$; exec sleep 1003" &)' &)
nohup sh -c 'echo pid=$$ >/dev/tty; exec sleep 1004' >/dev/null 2>&1 &
sh -c 'echo pid=$$; kill -STOP $$' &
read line; exit 8`

const broodSize = 5

// hatch starts the brood and returns the ids of all its processes, the leader included.
func hatch(t *testing.T, e *harness.Editor) (*harness.Session, []int) {
	t.Helper()
	s := e.Spawn(protocol.SpawnParams{Command: brood})
	s.Await(fmt.Sprintf(`(?s)(pid=\d+\s.*){%d}`, broodSize))
	pids := []int{s.PID}
	for _, match := range regexp.MustCompile(`pid=(\d+)`).FindAllStringSubmatch(s.Output(), -1) {
		pid, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	for _, pid := range pids {
		if !harness.Alive(pid) {
			t.Fatalf("process %d is not alive at the start", pid)
		}
	}
	return s, pids
}

func mustBeDead(t *testing.T, when string, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if harness.Alive(pid) {
			t.Errorf("%s: process %d is alive", when, pid)
		}
	}
}

// cgroups lists the directories that a sidecar has made in the cgroup filesystem.
func cgroups(t *testing.T, pid int) []string {
	t.Helper()
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	defer mounts.Close()
	var dirs []string
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || fields[2] != "cgroup2" {
			continue
		}
		// This process's own place is the sidecar's too; looking for it everywhere would be slow on a large machine.
		for own := range strings.Lines(harness.Read(t, "/proc/self/cgroup")) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(own), "0::"); ok {
				for dir := filepath.Join(fields[1], path); len(dir) >= len(fields[1]); dir = filepath.Dir(dir) {
					found, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("sandbox-sidecar-%d-*", pid)))
					if err != nil {
						t.Fatal(err)
					}
					dirs = append(dirs, found...)
				}
			}
		}
	}
	return dirs
}

// exitStatus is that of a sidecar that has ended by itself.
func exitStatus(t *testing.T, e *harness.Editor) int {
	t.Helper()
	select {
	case <-e.Gone():
	case <-time.After(harness.Patience):
		t.Fatal("the sidecar does not end")
	}
	err := e.HangUp()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &failed):
		return failed.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestLifetime_NothingOutlivesItsSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	for name, settings := range map[string]string{"sandboxed": harness.Settings(nil), "unsandboxed": harness.Off()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mustEndWithItsSession(t, settings)
		})
	}
}

func mustEndWithItsSession(t *testing.T, settings string) {
	t.Helper()
	e := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: settings})

	s, pids := hatch(t, e)
	closed := s.Close(0)
	mustBeDead(t, "closed", pids)
	if closed.Remaining != 0 || closed.Killed < len(pids) || closed.ExitCode != nil || closed.Signal == nil || *closed.Signal != "SIGKILL" {
		t.Errorf("closed: got %+v for %d processes", closed, len(pids))
	}

	s, pids = hatch(t, e)
	s.Type("\n")
	if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 8 {
		t.Errorf("the leader's exit: got %+v", exit)
	}
	mustBeDead(t, "after the leader's exit was told", pids)

	s, pids = hatch(t, e)
	if err := unix.Kill(s.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.Exit()
	mustBeDead(t, "after the leader was killed", pids)

	// One session's end is none of another's.
	_, kept := hatch(t, e)
	s, pids = hatch(t, e)
	s.Close(0)
	mustBeDead(t, "closed", pids)
	for _, pid := range kept {
		if !harness.Alive(pid) {
			t.Errorf("process %d of another session has died too", pid)
		}
	}
	harness.Call(e, protocol.Shutdown, protocol.Empty{})
	mustBeDead(t, "when shutdown was answered", kept)
}

func TestLifetime_NothingOutlivesTheSidecar(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	tests := []struct {
		name string
		end  func(t *testing.T, e *harness.Editor, editor *os.Process)
		want int
	}{
		{"shutdown and exit", func(t *testing.T, e *harness.Editor, _ *os.Process) {
			harness.Call(e, protocol.Shutdown, protocol.Empty{})
			harness.Notify(e, protocol.Exit, protocol.Empty{})
		}, 0},
		{"exit alone", func(t *testing.T, e *harness.Editor, _ *os.Process) {
			harness.Notify(e, protocol.Exit, protocol.Empty{})
		}, 1},
		{"the editor's process ends", func(t *testing.T, _ *harness.Editor, editor *os.Process) {
			if err := editor.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := editor.Wait(); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"SIGTERM", func(t *testing.T, e *harness.Editor, _ *os.Process) { kill(t, e, unix.SIGTERM) }, 128 + 15},
		{"SIGINT", func(t *testing.T, e *harness.Editor, _ *os.Process) { kill(t, e, unix.SIGINT) }, 128 + 2},
		{"SIGHUP", func(t *testing.T, e *harness.Editor, _ *os.Process) { kill(t, e, unix.SIGHUP) }, 128 + 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			editor := exec.Command("sleep", "1000")
			if err := editor.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = editor.Process.Kill()
				_ = editor.Wait()
			})
			e := harness.Start(t, harness.NewWorld(t), harness.Options{Initialize: func(p *protocol.InitializeParams) { p.ProcessID = &editor.Process.Pid }})
			s, pids := hatch(t, e)
			tracked := s.Tracking.Mechanism == "cgroup"
			if tracked && len(cgroups(t, e.Process())) != 1 {
				t.Fatalf("cgroups of a sidecar that lives: %s", cgroups(t, e.Process()))
			}
			test.end(t, e, editor.Process)
			if status := exitStatus(t, e); status != test.want {
				t.Errorf("exit status %d, want %d", status, test.want)
			}
			mustBeDead(t, "after the sidecar's end", pids)
			if left := cgroups(t, e.Process()); len(left) != 0 {
				t.Errorf("cgroups are left: %s", left)
			}
		})
	}
}

func kill(t *testing.T, e *harness.Editor, signal unix.Signal) {
	t.Helper()
	if err := unix.Kill(e.Process(), signal); err != nil {
		t.Fatal(err)
	}
}

func TestLifetime_AnEditorThatCrashes(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	e := harness.Start(t, harness.NewWorld(t), harness.Options{})
	_, pids := hatch(t, e)
	_, more := hatch(t, e)
	err := e.HangUp() // closes the pipes and waits for the end
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
	mustBeDead(t, "after the end of stdin", append(pids, more...))
	if left := cgroups(t, e.Process()); len(left) != 0 {
		t.Errorf("cgroups are left: %s", left)
	}
}

func TestLifetime_AnEditorThatIsGoneAlready(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(harness.Binary(t), "serve")
	command.Env = harness.Environ(w)
	c, err := client.Start(command)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	pid := gone.Process.Pid
	// Whether the answer still arrives is a matter of luck.
	_, _ = client.Call(ctx, c, protocol.Initialize, protocol.InitializeParams{ProcessID: &pid})
	select {
	case <-c.Gone():
	case <-ctx.Done():
		t.Error("the sidecar waits for an editor that is gone")
	}
	var failed *exec.ExitError
	if err := c.HangUp(); !errors.As(err, &failed) || failed.ExitCode() != 1 {
		t.Errorf("got %v, want exit status 1", err)
	}
}

func TestLifetime_ClosingALot(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	e := harness.Start(t, harness.NewWorld(t), harness.Options{})
	s := e.Spawn(protocol.SpawnParams{Command: `trap '' HUP; for i in 1 2 3 4 5 6 7 8 9 10; do (for j in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; wait) & done; echo ready; wait`})
	s.Await("ready")
	closed := s.Close(0)
	if closed.Remaining != 0 || closed.Killed < 11 {
		t.Errorf("got %+v", closed)
	}
	if list := harness.Call(e, protocol.List, protocol.Empty{}); len(list.Sessions) != 0 {
		t.Errorf("list: got %+v", list.Sessions)
	}
}
