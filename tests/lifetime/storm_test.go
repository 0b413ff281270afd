//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// stormLimit is how many processes and threads a sidecar has together with its
// sessions, which take all that they get.
const stormLimit = 300

// narrow is a way to limit the processes of a sidecar and its sessions, but of
// nobody else.
type narrow struct {
	name string
	wrap func(t *testing.T) func(*exec.Cmd)
}

// narrows are a cgroup for root, and RLIMIT_NPROC for others. Root has no such
// limit, and others can make no cgroup with the controller.
func narrows(t *testing.T) []narrow {
	t.Helper()
	if os.Geteuid() != 0 {
		return []narrow{{"RLIMIT_NPROC", narrowUser}}
	}
	var all []narrow
	for _, mode := range trackingModes(t) {
		all = append(all, narrow{"pids.max " + mode.name, func(t *testing.T) func(*exec.Cmd) {
			t.Helper()
			inner, outer := mode.wrap(t), narrowCgroup(t)
			return func(command *exec.Cmd) {
				inner(command)
				outer(command)
			}
		}})
	}
	return all
}

// narrowUser starts a sidecar in a user namespace of its own, whose processes
// alone RLIMIT_NPROC counts (Linux 5.14).
func narrowUser(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.Skip(t, "unshare", err.Error())
	}
	return wrapped(t, "user_namespace", unshare, "--user", "--map-current-user", "prlimit",
		fmt.Sprintf("--nproc=%d:%d", stormLimit, stormLimit))
}

// narrowCgroup starts a sidecar in a cgroup with few processes.
func narrowCgroup(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	var failures []error
	for _, hierarchy := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} { // version 1, version 2
		dir, err := os.MkdirTemp(hierarchy, "sidecar-storm-")
		if err != nil {
			failures = append(failures, err)
			continue
		}
		t.Cleanup(func() {
			harness.Eventually(t, "the cgroup is empty", func() bool { return os.Remove(dir) == nil })
		})
		most, err := os.OpenFile(filepath.Join(dir, "pids.max"), os.O_WRONLY, 0)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		_, err = fmt.Fprint(most, stormLimit)
		harness.Must(t, errors.Join(err, most.Close()))
		return wrapped(t, "pids_controller", "/bin/sh", "-c", `echo $$ >"$1"/cgroup.procs && shift && exec "$@"`, "sh", dir)
	}
	harness.Skip(t, "pids_controller", errors.Join(failures...).Error())
	return nil
}

// wrapped starts a sidecar by a command that executes what follows it.
func wrapped(t *testing.T, feature string, wrapper ...string) func(*exec.Cmd) {
	t.Helper()
	if out, err := exec.Command(wrapper[0], append(slices.Clone(wrapper[1:]), "true")...).CombinedOutput(); err != nil {
		harness.Skip(t, feature, err.Error()+": "+string(out))
	}
	return func(command *exec.Cmd) {
		command.Args = slices.Concat(wrapper, []string{command.Path}, command.Args[1:])
		command.Path = wrapper[0]
	}
}

// A session that takes every process and thread ends neither the sidecar nor
// another session, and can be closed.
func TestStorm_TheSidecarOutlivesIt(t *testing.T) {
	t.Parallel()
	for _, narrow := range narrows(t) {
		for _, sandbox := range sandboxes {
			for _, action := range []string{"storm", "storm-threads"} {
				// One after another: two storms would show nothing more.
				t.Run(narrow.name+" "+sandbox.name+" "+action, func(t *testing.T) {
					stormMustEnd(t, sandbox.settings, action, narrow.wrap(t))
				})
			}
		}
	}
}

func stormMustEnd(t *testing.T, settings, action string, wrap func(*exec.Cmd)) {
	t.Helper()
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: settings, Wrap: wrap})
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	other := e.Shell()
	other.Type("echo before-$((1+1))\n")
	other.Await("before-2")
	var idle []*harness.Session
	for range 5 {
		idle = append(idle, e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: "sleep 300"}))
	}
	line := fmt.Sprintf("%s %s %d", victim, action, 2*stormLimit)
	if action == "storm-threads" {
		// Go ends the program that gets no thread; another takes its place.
		line = fmt.Sprintf("while :; do %s 2>&1 | grep -o 'failed to create new OS thread' | sed 's/.*/full/'; done", line)
	}
	s := e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line})
	s.Await("full")
	for i := range 20 {
		other.Type(fmt.Sprintf("echo during-$((%d+1))\n", i))
		other.Await(fmt.Sprintf("during-%d", i+1))
	}
	harness.Call(e, protocol.List, protocol.Empty{})
	// Whether another session starts depends on the moment. The answer comes.
	_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{Kind: protocol.Tool, Command: "true", Cwd: w.Project})
	t.Logf("a session during the storm: %v", err)
	begun := time.Now()
	var closing sync.WaitGroup
	for _, each := range append(idle, s) {
		closing.Go(func() {
			if result := each.Close(0); result.Remaining != 0 {
				t.Errorf("close says %+v", result)
			}
		})
	}
	closing.Wait()
	elapsed, starved := time.Since(begun), harness.Starved(e.Process())
	if elapsed > 2*time.Second+starved {
		t.Errorf("the sessions took %s to close, %s of it without a processor", elapsed, starved)
	}
	t.Logf("%d sessions are closed in %s", len(idle)+1, elapsed)
	// The dead count as processes until whoever has adopted them has reaped them.
	harness.Eventually(t, "a session starts after the storm", func() bool {
		_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{Kind: protocol.Tool, Command: "true", Cwd: w.Project})
		return err == nil
	})
	if out, status := e.Tool("echo after"); out != "after\n" || status != 0 {
		t.Errorf("after the storm: %q, status %d", out, status)
	}
}
