package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// endings are the ways in which a session ends: by request, and by two deaths
// of the sidecar, after which the sidecar itself or the watchdog ends the
// session.
var endings = []struct {
	name string
	end  func(t *testing.T, e *harness.Editor, b *harness.Escapees)
}{
	{"close", func(t *testing.T, _ *harness.Editor, b *harness.Escapees) {
		result := b.Session.Close(0)
		if left := b.Alive(); len(left) != 0 || result.Killed < 7 {
			t.Errorf("close was answered with %d alive and %d killed, expected none and 7 or more", len(left),
				result.Killed)
		}
	}},
	{"SIGTERM", func(t *testing.T, e *harness.Editor, _ *harness.Escapees) { kill(t, e.Process(), unix.SIGTERM) }},
	{"SIGKILL", func(t *testing.T, e *harness.Editor, _ *harness.Escapees) { kill(t, e.Process(), unix.SIGKILL) }},
}

func kill(t *testing.T, pid int, signal unix.Signal) {
	t.Helper()
	if err := unix.Kill(pid, signal); err != nil {
		t.Fatal(err)
	}
}

// Whichever socket of systemd answers, the sidecar leaves the login session's
// cgroup for a scope of its own. From there no process outlives its session,
// and nothing is left of the scope.
func TestASidecarInALoginSessionHasAScopeOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	roads := []struct {
		name string
		env  []string
	}{
		{"systemd's own socket", []string{"XDG_RUNTIME_DIR=" + l.runtime}},
		{"no environment", nil},
		{"bus by address", []string{"XDG_RUNTIME_DIR=/nonexistent", "DBUS_SESSION_BUS_ADDRESS=unix:path=" + l.runtime +
			"/bus"}},
	}
	for i, road := range roads {
		for _, sandbox := range []struct{ name, settings string }{
			{"sandboxed", harness.Defaults(nil)}, {"unsandboxed", harness.Off()},
		} {
			for _, ending := range endings {
				if i > 0 && (sandbox.name == "unsandboxed" || ending.name == "SIGTERM") {
					continue // how the scope was requested makes no difference to these
				}
				t.Run(road.name+" "+sandbox.name+" "+ending.name, func(t *testing.T) {
					t.Parallel()
					e := l.edit(t, sandbox.settings, road.env...)
					sidecar := e.Process()
					where := cgroupOf(t, sidecar)
					name := filepath.Base(where)
					if !strings.HasPrefix(name, fmt.Sprintf("sandbox-sidecar-%d-", sidecar)) ||
						!strings.HasSuffix(name, ".scope") {
						t.Errorf("the sidecar is in %s, expected a scope of its own", where)
					}
					b := harness.StartEscapees(t, e, protocol.Tool)
					got := b.Session.Tracking
					if got.Mechanism != "cgroup" || !got.Guarantee {
						t.Errorf("tracking %+v, expected a cgroup and a guarantee", got)
					}
					if shown := e.Hello.Capabilities.Enforcement["process_tracking"]; !strings.Contains(shown.Detail,
						"in a transient scope of the user's systemd") {
						t.Errorf("the detail does not mention the scope: %q", shown.Detail)
					}
					for _, pid := range b.Alive() {
						if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil &&
							!strings.Contains(string(line), where+"/sandbox-sidecar-") {
							t.Errorf("process %d is outside the scope's subtree:\n%s", pid, line)
						}
					}
					ending.end(t, e, b)
					b.AwaitDead(t)
					if ending.name == "close" {
						_ = e.HangUp()
					}
					harness.Eventually(t, "the sidecar has ended", func() bool { return !harness.Alive(sidecar) })
					harness.Eventually(t, "scope and subtree are gone", func() bool {
						return len(l.traces(sidecar)) == 0
					})
				})
			}
		}
	}
}

// If no systemd answers, sessions still start. The reply says what is missing
// and promises nothing.
func TestASidecarWithoutSystemdSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := newLogin(t)
	e := l.edit(t, harness.Off(), "XDG_RUNTIME_DIR=/nonexistent", "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent/bus")
	if where := cgroupOf(t, e.Process()); filepath.Base(where) != "login" {
		t.Errorf("the sidecar is in %s, expected the login session's", where)
	}
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "echo ready; sleep 300"})
	s.Await("ready")
	if s.Tracking.Mechanism != "subreaper" || s.Tracking.Guarantee {
		t.Errorf("tracking %+v, expected a subreaper without a guarantee", s.Tracking)
	}
	shown := e.Hello.Capabilities.Enforcement["process_tracking"]
	for _, part := range []string{"permission denied", "/nonexistent/systemd/private", "/nonexistent/bus"} {
		if !strings.Contains(shown.Detail, part) {
			t.Errorf("the detail does not name %q: %q", part, shown.Detail)
		}
	}
	if shown.Status != "degraded" || !strings.Contains(shown.Fix, "enable-linger") {
		t.Errorf("process_tracking is %+v, expected degraded, with a fix", shown)
	}
	if result := s.Close(0); result.Remaining != 0 || harness.Alive(s.PID) {
		t.Errorf("close: %+v, and the leader alive: %v", result, harness.Alive(s.PID))
	}
}
