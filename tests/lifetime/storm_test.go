//go:build linux

package lifetime

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	// helpers are the processes and threads of a session besides the command's,
	// at most.
	helpers int
	wrap    func(t *testing.T, most int) func(*exec.Cmd)
}

// narrows are a cgroup for root, and RLIMIT_NPROC for others. Root has no such
// limit, and others can make no cgroup with the controller.
func narrows(t *testing.T) []narrow {
	t.Helper()
	if os.Geteuid() != 0 {
		return []narrow{
			{"RLIMIT_NPROC", 20, narrowUser},
			{"RLIMIT_NPROC without namespaces", 20, func(t *testing.T, most int) func(*exec.Cmd) {
				t.Helper()
				inner, outer := harness.WithoutNamespaces(t), narrowUser(t, most)
				return func(command *exec.Cmd) {
					inner(command)
					outer(command)
				}
			}},
		}
	}
	var all []narrow
	for _, mode := range trackingModes(t) {
		helpers := 20
		if mode.name == "as it comes" {
			helpers = 3
		}
		all = append(all, narrow{"pids.max " + mode.name, helpers, func(t *testing.T, most int) func(*exec.Cmd) {
			t.Helper()
			inner, outer := mode.wrap(t), narrowCgroup(t, most)
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
func narrowUser(t *testing.T, most int) func(*exec.Cmd) {
	t.Helper()
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		harness.Skip(t, "unshare", err.Error())
	}
	return wrapped(t, "user_namespace", unshare, "--user", "--map-current-user", "prlimit",
		fmt.Sprintf("--nproc=%d:%d", most, most))
}

// narrowCgroup starts a sidecar in a cgroup with few processes.
func narrowCgroup(t *testing.T, most int) func(*exec.Cmd) {
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
		file, err := os.OpenFile(filepath.Join(dir, "pids.max"), os.O_WRONLY, 0)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		_, err = fmt.Fprint(file, most)
		harness.Must(t, errors.Join(err, file.Close()))
		return wrapped(t, "pids_controller", "/bin/sh", "-c", `echo $$ >"$1"/cgroup.procs && shift && exec "$@"`, "sh",
			dir)
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
	all := narrows(t)
	for i, narrow := range all {
		for j, sandbox := range sandboxes {
			for k, action := range []string{"storm", "storm-threads"} {
				// Those whose turn it is differ in all respects, or in the last
				// two if there is one way to limit processes.
				if !harness.Turn(t, (j+k)%2+(i+j)%len(all)*2, 2*len(all)) {
					continue
				}
				// One after another: two storms would show nothing more.
				t.Run(narrow.name+" "+sandbox.name+" "+action, func(t *testing.T) {
					stormMustEnd(t, sandbox.settings, action, narrow.wrap(t, stormLimit))
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
		line = fmt.Sprintf("while :; do %s 2>&1 | grep -o 'failed to create new OS thread' | sed 's/.*/full/'; done",
			line)
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
	mustCloseSoon(t, e, append(idle, s))
	// The dead count as processes until whoever has adopted them has reaped them.
	harness.Eventually(t, "a session starts after the storm", func() bool {
		_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
			Kind: protocol.Tool, Command: "true", Cwd: w.Project,
		})
		return err == nil
	})
	if out, status := e.Tool("echo after"); out != "after\n" || status != 0 {
		t.Errorf("after the storm: %q, status %d", out, status)
	}
}

// Fifty sessions that take every process and thread at once end neither the
// sidecar nor another session, and can be closed. What limits them are the
// processes of all together. This test is not parallel, because it measures time.
func TestStorm_OfFiftySessions(t *testing.T) {
	all := narrows(t)
	for i, narrow := range all {
		for j, action := range []string{"storm", "storm-threads"} {
			if !harness.Turn(t, i+j, len(all)) {
				continue
			}
			t.Run(narrow.name+" "+action, func(t *testing.T) {
				w := harness.NewWorld(t)
				wrap := narrow.wrap(t, stormLimit+fifty*narrow.helpers)
				e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(nil), Wrap: wrap})
				fiftyStormsMustEnd(t, e, action, 40, 1)
			})
		}
	}
}

// Of fifty sessions that all reach their own limit of processes, each is told of
// once, and another session has all of its own. This test is not parallel,
// because it measures time.
func TestStorm_OfFiftySessionsThatAreLimited(t *testing.T) {
	const most = 20
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(harness.Sandbox{
		"limits": map[string]any{"processes": most},
	})})
	limits := e.Shell().Sandbox.Protections["limits"]
	if !strings.Contains(limits.Mechanism, "RLIMIT_NPROC") && !strings.Contains(limits.Mechanism, "pids.max") {
		if limits.Status == "enforced" {
			t.Errorf("reply: %+v", limits)
		}
		return // as root without a cgroup that limits
	}
	told := listenForLimits(e)
	fiftyStormsMustEnd(t, e, "storm-threads", 2*most, fifty)
	of := map[string]int{}
	for _, limit := range told.all() {
		if of[limit.SessionID]++; limit.Setting != "limits.processes" {
			t.Errorf("told: %+v", limit)
		}
	}
	for id, times := range of {
		if times != 1 {
			t.Errorf("told %d times of session %s", times, id)
		}
	}
	if len(of) != fifty {
		t.Errorf("told of %d sessions, want %d", len(of), fifty)
	}
}

// fiftyStormsMustEnd has fifty sessions take so many processes or threads each,
// again and again. It closes them once so many have said that they are at their
// limit.
func fiftyStormsMustEnd(t *testing.T, e *harness.Editor, action string, each, full int) {
	t.Helper()
	victim := e.World.ProjectPath("victim")
	harness.Victim(t, "tests/victim", victim)
	other := e.Shell()
	start, line := startTogether(t, e.World)
	if action == "storm" {
		line += fmt.Sprintf("exec %s storm %d 500", victim, each)
	} else {
		line += fmt.Sprintf("while :; do %s storm-threads %d 2>&1 | grep -m1 'failed to create new OS thread' "+
			"&& echo full; sleep 0.5; done", victim, each)
	}
	var storms []*harness.Session
	for range fifty {
		storms = append(storms, e.Spawn(protocol.SpawnParams{Kind: protocol.Tool, Command: line}))
	}
	before := mustEcho(t, e, other, "calm")
	start(fifty)
	harness.Eventually(t, "the sessions are at their limit", func() bool {
		if strings.Contains(e.Log.String(), "failed to create new OS thread") {
			t.Fatal("the sidecar has ended")
		}
		return printing(storms, "full") >= full
	})
	during := mustEcho(t, e, other, "storm")
	t.Logf("the slowest echo took %s during the storm, and %s before", during, before)
	harness.Call(e, protocol.List, protocol.Empty{})
	mustCloseSoon(t, e, storms)
	mustEcho(t, e, other, "after")
	harness.Eventually(t, "a session starts after the storm", func() bool {
		_, err := harness.Try(e, protocol.Spawn, protocol.SpawnParams{
			Kind: protocol.Tool, Command: "true", Cwd: e.World.Project,
		})
		return err == nil
	})
}
