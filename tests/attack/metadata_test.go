//go:build linux

package attack

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Changes the mode, the owner, the times and the access control list of a file
// outside, which Landlock does not govern. A file tree of the session's own
// refuses it. Without one it works, and the reply says so. The content stays out
// of reach in any case.
func TestMetadataOutsideCannotBeChanged(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for _, action := range []string{"chmod", "chown", "utime", "acl"} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			try := func(settings string, machine harness.Machine) (result, bool) {
				s := newScene(t)
				secretOutside(s)
				e := harness.Start(t, s.World, harness.Options{Settings: settings, Wrap: machine.Wrap})
				before := metadata(t, s.OutsidePath("secret"))
				result := s.attempt(e, action, s.OutsidePath("secret"))
				if read := s.attempt(e, "read", s.OutsidePath("secret")); read.done() == result.reply.Sandbox.Applied {
					t.Errorf("content %s: status %d\n%s", machine.Name, read.status, read.output)
				}
				return result, metadata(t, s.OutsidePath("secret")) != before
			}
			// Only root can give a file away. To give it to oneself changes nothing.
			silent := action == "chown" && os.Geteuid() != 0
			if control, harm := try(harness.Off(), harness.Machine{}); !control.done() || !harm && !silent {
				t.Fatalf("control: without a sandbox it must work: status %d, changed: %t\n%s", control.status, harm,
					control.output)
			}
			for _, machine := range harness.Machines(t) {
				result, harm := try(harness.Settings(nil), machine)
				tree := result.reply.Sandbox.Protections["file_tree"]
				switch tree.Status {
				case protocol.Enforced:
					if harm || !result.refused("EROFS") {
						harness.Breach(t, "THE ATTACK WORKS: %t, %s: status %d\n%s", harm, machine.Name, result.status,
							result.output)
					}
				default:
					if !result.done() || !strings.Contains(tree.Detail, "can be changed") {
						t.Errorf("the reply says %+v %s: status %d\n%s", tree, machine.Name, result.status,
							result.output)
					}
				}
			}
		})
	}
}

// metadata is what the actions of the test change.
func metadata(t testing.TB, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	harness.Must(t, err)
	stat := info.Sys().(*syscall.Stat_t) //nolint:errcheck,forcetypeassert // always, on Linux
	return fmt.Sprint(info.Mode(), stat.Uid, stat.Gid, info.ModTime())
}

// field reads a hexadecimal field of /proc/PID/status.
func field(t testing.TB, status, name string) uint64 {
	t.Helper()
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			number, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			harness.Must(t, err)
			return number
		}
	}
	t.Fatalf("no %s in:\n%s", name, status)
	return 0
}
