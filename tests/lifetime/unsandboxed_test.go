//go:build linux

package lifetime

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// freedoms are what a user's own terminal must still be able to do although its
// processes are tracked. Each line prints "free" at its end. It is tried
// outside first, because a machine may not be able to do it at all. The last is
// another sandbox.
var freedoms = []struct{ name, line string }{
	{"sudo", `test "$(sudo -n id -u)" = 0 && echo free`},
	{"unshare", `unshare --user --map-root-user --mount --pid --fork sh -c 'mount -t tmpfs none /mnt && test $$ = 1 ` +
		`&& echo free'`},
	{"bwrap", `bwrap --ro-bind / / --tmpfs /tmp --unshare-all sh -c 'touch /tmp/mark && ! touch /mark 2>/dev/null && ` +
		`echo free'`},
	{"strace", `strace -f -e trace=execve -o trace sh -c '/bin/true; /bin/true' && test "$(grep -c ` +
		`'execve("/bin/true"' trace)" = 2 && echo free`},
	{
		"filesystem",
		`HOME=$PWD/inner SIDECAR exec -- sh -c 'cat mine && ! cat ../outside/secret 2>/dev/null && echo free'`,
	},
}

// Tracking takes nothing away: privileges, namespaces, tracing and other
// sandboxes work in an unsandboxed session.
func TestAnUnsandboxedSessionKeepsItsFreedom(t *testing.T) {
	t.Parallel()
	w := harness.NewWorld(t)
	harness.Write(t, filepath.Join(w.Project, "inner", ".config", "sandbox-sidecar", "settings.json"),
		harness.Settings(nil))
	harness.Write(t, filepath.Join(w.Project, "mine"), "")
	harness.Write(t, filepath.Join(w.Outside, "secret"), "")
	shared := harness.Start(t, w, harness.Options{Settings: harness.Off()})
	for _, freedom := range freedoms {
		t.Run(freedom.name, func(t *testing.T) {
			t.Parallel()
			e := shared.For(t)
			line := strings.ReplaceAll(freedom.line, "SIDECAR", harness.Binary(t))
			outside := exec.Command("/bin/sh", "-c", line)
			outside.Dir, outside.Env = w.Project, harness.Environ(w)
			if out, err := outside.CombinedOutput(); err != nil || !strings.Contains(string(out), "free") {
				harness.Skip(t, freedom.name, fmt.Sprintf("outside: %v: %s", err, out))
			}
			for _, kind := range []protocol.Kind{protocol.Terminal, protocol.Tool} {
				s := e.Spawn(protocol.SpawnParams{Kind: kind, Command: line})
				if exit := s.Exit(); exit.ExitCode == nil || *exit.ExitCode != 0 ||
					!strings.Contains(s.Output(), "free") {
					t.Errorf("%s, %s: %+v\n%s", kind, s.Tracking.Mechanism, exit, s.Output())
				}
			}
		})
	}
}

// Processes that a session starts with another user's rights, or in another
// namespace, end with it too.
func TestProcessesThatGainedRightsOrANamespaceAreKilled(t *testing.T) {
	t.Parallel()
	shared := harness.Start(t, harness.NewWorld(t), harness.Options{Settings: harness.Off()})
	for name, starter := range map[string]string{
		"sudo": "sudo -n", "unshare": "unshare --user --map-root-user --pid --fork",
		"bwrap": "bwrap --ro-bind / / --unshare-all", "strace": "strace -f -o /dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := shared.For(t)
			if out, err := exec.Command("/bin/sh", "-c", starter+" true").CombinedOutput(); err != nil {
				harness.Skip(t, name, fmt.Sprintf("outside: %v: %s", err, out))
			}
			token := fmt.Sprintf("300.%d", uuid.New().ID())
			if !guaranteed(e) {
				harness.Skip(t, "process_tracking", e.Hello.Capabilities.Enforcement["process_tracking"].Detail)
			}
			s := e.Spawn(protocol.SpawnParams{Command: fmt.Sprintf("setsid %s sleep %s & wait", starter, token)})
			harness.Eventually(t, "the sleeper sleeps", func() bool {
				return slices.ContainsFunc(harness.Find(token), func(pid int) bool { return comm(pid) == "sleep" })
			})
			if result := s.Close(0); result.Remaining != 0 {
				harness.Breach(t, "close says %+v", result)
			}
			if left := harness.Find(token); len(left) != 0 {
				harness.Breach(t, "%d processes are left", len(left))
			}
		})
	}
}
