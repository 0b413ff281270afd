//go:build linux

package denials

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Docker's filter forbids the sidecar to take descriptors, so it connects no
// socket for a session, and says so. Memory it may read: denials are reported.
func TestDenials_AreReportedInAContainer(t *testing.T) {
	t.Parallel()
	s := newObservedScene(t)
	file := s.OutsidePath("file")
	harness.Write(t, file, "content\n")
	e := s.start(harness.Settings(nil), harness.InContainer(t))
	for name, argv := range map[protocol.Access][]string{
		"read": {"cat", file}, "write": {s.Victim, "write", file, "changed"},
	} {
		session, status, denials := e.tool(argv...)
		if _, times := find(denials, string(name), file); status == 0 || times != 1 {
			t.Errorf("%s: status %d, denials %+v\n%s", name, status, denials, session.Output())
		}
		sockets := session.Sandbox.Protections["unix_sockets"]
		landlock := sockets.Status == protocol.Enforced && strings.HasPrefix(sockets.Mechanism, "landlock")
		gap := strings.Contains(sockets.Detail, "pidfd_getfd") && strings.Contains(sockets.Fix, "seccomp=unconfined")
		if !landlock && (sockets.Status == protocol.Enforced || !gap) {
			t.Errorf("the reply says %+v", sockets)
		}
	}
}
