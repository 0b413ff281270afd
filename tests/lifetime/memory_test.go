//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stormMemory is what a sidecar has together with its sessions, in MB. A session
// tries to take four times as much.
const stormMemory = 256

// narrowMemory starts a sidecar in a cgroup with little memory and no swap, below
// this process's own. Nobody else notices what happens in it.
func narrowMemory(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Skip(t, "root", "only root can make a cgroup with a limit of memory")
	}
	type limit struct{ parent, file, swap string }
	var limits []limit
	for line := range strings.Lines(harness.Read(t, "/proc/self/cgroup")) {
		switch fields := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(fields) == 3 && fields[1] == "memory":
			limits = append(limits, limit{
				"/sys/fs/cgroup/memory" + fields[2], "memory.limit_in_bytes", "memory.memsw.limit_in_bytes",
			})
		case len(fields) == 3 && fields[0] == "0":
			limits = append(limits, limit{"/sys/fs/cgroup" + fields[2], "memory.max", "memory.swap.max"})
		}
	}
	failures := []error{errors.New("no cgroup with a limit of memory can be made")}
	for _, l := range limits {
		dir, err := os.MkdirTemp(l.parent, "sidecar-storm-")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		t.Cleanup(func() {
			harness.Eventually(t, "the cgroup is empty", func() bool { return os.Remove(dir) == nil })
		})
		set := func(file string, value int) error {
			f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(f, value)
			return errors.Join(err, f.Close())
		}
		if err := set(l.file, stormMemory<<20); err != nil {
			failures = append(failures, err)
			continue
		}
		swap := 0
		if strings.Contains(l.swap, "memsw") { // both together
			swap = stormMemory << 20
		}
		_ = set(l.swap, swap) // missing if swap is not accounted
		return wrapped(t, "memory_controller", "/bin/sh", "-c", `echo $$ >"$1"/cgroup.procs && shift && exec "$@"`, "sh", dir)
	}
	harness.Skip(t, "memory_controller", errors.Join(failures...).Error())
	return nil
}

// If sessions take all memory that there is, the kernel ends them, and neither
// the sidecar nor the sessions that take little. Nothing limits their memory
// here: what decides is who is ended first.
func TestStorm_TheKernelEndsWhoTakesTheMemory(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: narrowMemory(t)})
	other := e.Shell()
	other.Type("echo before-$((1+1))\n")
	other.Await("before-2")
	// Each takes and is ended, again and again, until its session is closed.
	line := fmt.Sprintf("while :; do dd if=/dev/zero of=/dev/null bs=%dM count=1 status=none; echo ended-$?; done",
		4*stormMemory)
	var storms []*harness.Session
	for range 3 {
		storms = append(storms, e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line}))
	}
	var longest time.Duration
	for i := range 10 {
		begun := time.Now()
		other.Type(fmt.Sprintf("echo during-$((%d+1))\n", i))
		other.Await(fmt.Sprintf("during-%d", i+1))
		longest = max(longest, time.Since(begun))
	}
	storms[0].Await("ended-137")
	harness.Call(e, protocol.List, protocol.Empty{})
	begun := time.Now()
	for _, s := range storms {
		if result := s.Close(0); result.Remaining != 0 {
			t.Errorf("close says %+v", result)
		}
	}
	elapsed, starved := time.Since(begun), harness.Starved(e.Process())
	if elapsed > 2*time.Second+starved {
		t.Errorf("the sessions took %s to close, %s of it without a processor", elapsed, starved)
	}
	other.Type("echo after-$((1+1))\n")
	other.Await("after-2")
	t.Logf("%d sessions are closed in %s; an echo during the storm took %s at most", len(storms), elapsed, longest)
}
