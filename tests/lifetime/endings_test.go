package lifetime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// endings are the ways in which a session ends. Each starts the end; that the brood is dead is awaited by the test.
var endings = []struct {
	name string
	end  func(t *testing.T, e *harness.Editor, b *harness.Brood)
}{
	{"close", func(t *testing.T, _ *harness.Editor, b *harness.Brood) {
		result := b.Session.Close(0)
		if left := b.Alive(); len(left) != 0 || result.Remaining != 0 {
			t.Errorf("close was answered with %d processes alive", len(left))
		}
		if result.Killed < 7 {
			t.Errorf("close counted %d killed processes, expected 7 or more", result.Killed)
		}
	}},
	{"leader's exit", func(t *testing.T, _ *harness.Editor, b *harness.Brood) {
		if err := unix.Kill(b.Session.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		b.Session.Exit()
		if left := b.Alive(); len(left) != 0 {
			t.Errorf("terminal/exited was sent with %d processes alive", len(left))
		}
	}},
	{"end of stdin", func(_ *testing.T, e *harness.Editor, _ *harness.Brood) { _ = e.HangUp() }},
	{"SIGTERM", signal(unix.SIGTERM)},
	{"SIGHUP", signal(unix.SIGHUP)},
	{"SIGKILL", signal(unix.SIGKILL)},
	{"SIGSTOP and SIGKILL", func(t *testing.T, e *harness.Editor, b *harness.Brood) {
		signal(unix.SIGSTOP)(t, e, b)
		signal(unix.SIGKILL)(t, e, b)
	}},
}

func signal(number unix.Signal) func(*testing.T, *harness.Editor, *harness.Brood) {
	return func(t *testing.T, e *harness.Editor, _ *harness.Brood) {
		if err := unix.Kill(e.Process(), number); err != nil {
			t.Fatal(err)
		}
	}
}

// However a session ends, sandboxed or not, everything that it ever started is dead, and no trace of its cgroup, its journal or its
// private directory is left.
func TestNothingOutlivesItsSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	for _, sandbox := range []struct{ name, settings string }{
		{"sandboxed", harness.Defaults(nil)}, {"unsandboxed", harness.Off()},
	} {
		for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
			for _, ending := range endings {
				t.Run(sandbox.name+" "+string(kind)+" "+ending.name, func(t *testing.T) {
					t.Parallel()
					w := harness.NewWorld(t)
					e := harness.Start(t, w, harness.Options{Settings: sandbox.settings})
					b := harness.Release(t, e, kind)
					count, sidecar, begun := len(b.Alive()), e.Process(), time.Now()
					ending.end(t, e, b)
					b.Dead(t)
					t.Logf("%s: %d processes dead after %d ms", b.Session.Tracking.Mechanism, count, time.Since(begun).Milliseconds())
					if ending.name != "close" && ending.name != "leader's exit" {
						harness.Eventually(t, "the sidecar has ended", func() bool { return !harness.Alive(sidecar) })
						noTrace(t, w, sidecar)
					}
				})
			}
		}
	}
}

// noTrace checks what a sidecar that has ended must not leave: in the state directory, among the processes, in the cgroup tree.
func noTrace(t *testing.T, w *harness.World, sidecar int) {
	t.Helper()
	state := filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "run")
	harness.Eventually(t, "the state directory is empty", func() bool {
		entries, err := os.ReadDir(state)
		return err == nil && len(entries) == 0
	})
	harness.Eventually(t, "the watchdog has ended", func() bool { return len(harness.Find(state)) == 0 })
	harness.Eventually(t, "the cgroups are gone", func() bool { return len(cgroupsOf(t, sidecar)) == 0 })
}

// cgroupsOf lists the cgroup directories that a sidecar of this process id has made, wherever its cgroup is.
func cgroupsOf(t *testing.T, sidecar int) []string {
	t.Helper()
	out, err := exec.Command("find", "/sys/fs/cgroup", "-type", "d", "-name", "sandbox-sidecar-"+itoa(sidecar)+"-*").Output()
	if err != nil && len(out) == 0 {
		return nil // directories that vanish while find looks
	}
	return strings.Fields(string(out))
}

// The watchdog is ended by somebody: the sidecar starts another, and that one does its work.
func TestAKilledWatchdogIsReplaced(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{})
	b := harness.Release(t, e, protocol.Tool)
	state := filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "run")
	first := harness.Find(state)
	if len(first) != 1 {
		t.Fatalf("%d watchdogs run, expected 1", len(first))
	}
	if err := unix.Kill(first[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "another watchdog runs", func() bool {
		now := harness.Find(state)
		return len(now) == 1 && now[0] != first[0]
	})
	e.Log.Await(t, "watchdog has died")
	signal(unix.SIGKILL)(t, e, b)
	b.Dead(t)
	harness.Eventually(t, "the sidecar has ended", func() bool { return !harness.Alive(e.Process()) })
}

// The sidecar and its watchdog are killed together: the next sidecar of the same user sweeps up what they left, and touches nothing of
// one that lives.
func TestTheNextSidecarSweepsUpWhatTwoDeadOnesLeft(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	w := harness.NewWorld(t)
	dead, living := harness.Start(t, w, harness.Options{}), harness.Start(t, w, harness.Options{})
	left, kept := harness.Release(t, dead, protocol.Tool), harness.Release(t, living, protocol.Tool)
	state := filepath.Join(w.Home, ".local", "state", "sandbox-sidecar", "run")
	watchdogs := harness.Find(state)
	if len(watchdogs) != 2 {
		t.Fatalf("%d watchdogs run, expected 2", len(watchdogs))
	}
	for _, pid := range watchdogs {
		if parent(t, pid) == dead.Process() {
			// Stopped first, or it might be quicker than the second kill.
			_ = unix.Kill(pid, unix.SIGSTOP)
			_ = unix.Kill(dead.Process(), unix.SIGKILL)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	// Its first thread may be a zombie while others still hold the journal's lock; reaped is dead.
	_ = dead.HangUp()
	if len(left.Alive()) == 0 {
		t.Fatal("the brood is dead without anybody to kill it: this test shows nothing")
	}
	harness.Start(t, w, harness.Options{})
	left.Dead(t)
	noTraceOf := func() bool { return len(cgroupsOf(t, dead.Process())) == 0 }
	harness.Eventually(t, "the dead sidecar's cgroups are gone", noTraceOf)
	if len(kept.Alive()) < 7 {
		t.Errorf("the sweep touched a living sidecar's session: %d processes are left", len(kept.Alive()))
	}
	kept.Session.Close(0)
	kept.Dead(t)
}
