//go:build linux

package attack

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Takes a lease on a file that is granted for reading only. Every process
// outside that opens it would wait for the lease, for 45 seconds by default.
func TestAReadOnlyFileCannotBeLeased(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls")
	try := func(settings func(*scene) string) (said string, blocks bool) {
		s := newScene(t)
		secretOutside(s)
		session := s.Start(settings(s)).Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: s.Victim, Args: []string{"lease", s.OutsidePath("secret")},
		})
		said = session.Await(`leased|refused: \w+: \w+|misused: \w+`)[0]
		fd, err := unix.Open(s.OutsidePath("secret"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		session.Close(0)
		return said, errors.Is(err, unix.EWOULDBLOCK)
	}
	if said, blocks := try(func(*scene) string { return harness.Off() }); said != "leased" || !blocks {
		t.Fatalf("control: without a sandbox the attack must work: %s, blocks: %t", said, blocks)
	}
	said, blocks := try(func(s *scene) string { return harness.Settings(readOnlyOutside(s)) })
	if blocks {
		harness.Breach(t, "THE ATTACK WORKS: nobody can open the file")
	}
	if said != "refused: lease: EACCES" {
		t.Errorf("want a refusal with EACCES: %s", said)
	}
}

// Starts a process as a child of its own parent (CLONE_PARENT). In a cgroup
// that parent is the sidecar, which never waits for processes that it has not
// started. Each would stay a zombie until the sidecar ends.
func TestAProcessCannotBeStartedAsTheSidecarsChild(t *testing.T) {
	t.Parallel()
	attack{
		actions: func(*scene) []string { return []string{"clone-parent"} },
		refusal: "EPERM", harm: func(_ *scene, output string) bool { return output == "adopted out\n" },
	}.mustFail(t)
}
