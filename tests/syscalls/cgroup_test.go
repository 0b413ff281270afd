//go:build linux

package syscalls

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Opens the directory of a cgroup outside with O_PATH, which needs no right on
// files at all, and starts a process in it by clone3. That process would
// outlive the session.
func TestNoProcessIsStartedInAnotherCgroup(t *testing.T) {
	t.Parallel()
	harness.Require(t, "syscalls", "process_tracking")
	root := cgroupRoot(t)
	makeCgroup := func() string {
		dir, err := os.MkdirTemp(root, "sidecar-test-")
		if err != nil {
			harness.Skip(t, "cgroup_root", err.Error())
		}
		t.Cleanup(func() {
			harness.Eventually(t, "the cgroup is given back", func() bool { return os.Remove(dir) == nil })
		})
		return dir
	}
	try := func(settings, dir string) string {
		s := newScene(t, settings)
		session := s.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: s.victim, Args: []string{"answer=into," + dir},
		})
		session.Exit()
		return session.Output()
	}
	dir := makeCgroup()
	if output := try(sandboxed(), dir); !strings.Contains(output, "answer ENOSYS") ||
		strings.Contains(output, "sidecar-test-") {
		t.Errorf("want ENOSYS: %s", output)
	}
	if output := try(harness.Off(), dir); !strings.Contains(output, strings.TrimPrefix(dir, root)) ||
		!strings.Contains(output, "answer ok") {
		t.Errorf("control: without a sandbox the attack must work: %s", output)
	}
}

// cgroupRoot is where cgroup v2 is mounted.
func cgroupRoot(t *testing.T) string {
	t.Helper()
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if before, after, found := strings.Cut(lines.Text(), " - "); found && strings.HasPrefix(after, "cgroup2 ") {
			return strings.Fields(before)[4]
		}
	}
	harness.Skip(t, "cgroup_root", "cgroup v2 is not mounted")
	return ""
}
