//go:build linux

package lifetime

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// ownCgroup makes a cgroup beside this process's own, as systemd does for a
// service that arranges its own cgroups, and returns it. If it cannot be made, or
// has no controller that limits, the error says why.
func ownCgroup(t *testing.T) (string, error) {
	t.Helper()
	var path string
	for line := range strings.Lines(harness.Read(t, "/proc/self/cgroup")) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "0::"); found {
			path = rest
		}
	}
	if path == "" || path == "/" {
		return "", fmt.Errorf("this process is in no cgroup (v2) below the root: %q", path)
	}
	dir, err := os.MkdirTemp(filepath.Dir("/sys/fs/cgroup"+path), "sidecar-limits-")
	if err != nil {
		return "", err
	}
	t.Cleanup(func() { harness.Eventually(t, "the cgroup is empty", func() bool { return removeCgroups(dir) }) })
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return "", err // cgroup v1 is there
	}
	controllers := strings.Fields(string(text))
	for _, name := range []string{"memory", "pids", "cpu"} {
		if !slices.Contains(controllers, name) {
			return "", fmt.Errorf("cgroups have only the controllers %q", controllers)
		}
	}
	return dir, unix.Setxattr(dir, "user.delegate", []byte("1"), 0)
}

func removeCgroups(dir string) bool {
	below, _ := filepath.Glob(filepath.Join(dir, "*", ""))
	for _, path := range below {
		if info, err := os.Lstat(path); err == nil && info.IsDir() && !removeCgroups(path) {
			return false
		}
	}
	return os.Remove(dir) == nil
}

// A sidecar that is alone in a cgroup with controllers limits the memory of each
// session by it, of whatever kind that is. Elsewhere its replies say that memory
// is not limited.
func TestLimits_InACgroupOfTheSidecarsOwn(t *testing.T) {
	t.Parallel()
	dir, refused := ownCgroup(t)
	if refused != nil && os.Getenv("SIDECAR_HAS") == "memory_limits" {
		t.Fatal(refused)
	}
	w := harness.NewWorld(t)
	options := harness.Options{Settings: harness.Defaults(harness.Sandbox{
		"limits": map[string]any{"memory": "64M", "processes": 40},
	})}
	if refused == nil {
		options.Wrap = inCgroup(t, dir)
	}
	e := harness.Start(t, w, options)
	other := e.Shell()
	if row := other.Sandbox.Protections["limits"]; refused != nil {
		t.Logf("no cgroup can be given to a sidecar: %v", refused)
		if row.Status == "enforced" || !strings.Contains(row.Detail, "memory is not limited") && row.Mechanism != "" {
			t.Errorf("reply: %+v", row)
		}
		return
	} else if row.Status != "enforced" || !strings.Contains(row.Mechanism, "memory.max") {
		t.Fatalf("reply: %+v", row)
	}
	processes := "40"
	if strings.Contains(other.Sandbox.Protections["limits"].Mechanism, "RLIMIT_NPROC") {
		processes = "39" // or the kernel would not tell of it
	}
	mustHave(t, other, map[string]string{
		// a terminal's shell survives
		"memory.max": fmt.Sprint(64 << 20), "pids.max": processes, "memory.oom.group": "0",
	})
	told := listenForLimits(e)
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	takers := []string{"private", "shared", "memfd", "/dev/shm/full"}
	if harness.Namespaces(t) {
		takers = append(takers, "system-v")
	}
	if inMemory(t, "/tmp") {
		takers = append(takers, "/tmp/full")
	}
	for _, kind := range takers {
		takesTooMuch(t, e, told, victim, kind)
		mustEcho(t, e, other, "after-"+filepath.Base(kind))
	}
	for _, path := range takers {
		if !strings.HasPrefix(path, "/") {
			continue
		}
		if output, status := e.Tool("ls -l " + path + " && rm " + path); status != 0 { // it is nobody's process
			t.Errorf("status %d: %s", status, output)
		}
	}
	s, _ := e.Run(protocol.SpawnParams{Command: victim, Args: []string{"crowd", "60"}})
	if limits := toldOf(told, s); len(limits) != 1 || limits[0].Setting != "limits.processes" ||
		limits[0].Source != "" {
		t.Errorf("told: %+v\n%s", limits, s.Output())
	}
	execTakesTooMuch(t, w, victim)
	execLeavesItsCgroup(t, w)
	if limits := toldOf(told, other); len(limits) != 0 {
		t.Errorf("told of a session that took nothing: %+v", limits)
	}
}

// tooMuch is more than machines have, in MB: 20 GB.
const tooMuch = 20 << 10

// takesTooMuch has sessions take less and more memory than they may have.
func takesTooMuch(t *testing.T, e *harness.Editor, told *toldLimits, victim, kind string) {
	t.Helper()
	control := e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: victim, Args: []string{"take", kind, "16"},
	})
	control.Await("taken")
	mustHave(t, control, map[string]string{"memory.oom.group": "1"})
	control.Close(0)
	s, status := e.Run(protocol.SpawnParams{
		Command: fmt.Sprintf("%s take %s %d; echo survived", victim, kind, tooMuch),
	})
	if status != -1 || strings.Contains(s.Output(), "survived") || strings.Contains(s.Output(), "taken") {
		t.Errorf("%s memory: status %d, %s", kind, status, s.Output())
	}
	for of, want := range map[*harness.Session]int{control: 0, s: 1} {
		limits := toldOf(told, of)
		if len(limits) != want || want == 1 && (limits[0].Setting != "limits.memory" || len(limits[0].Message) > 100) {
			t.Errorf("%s memory: told %+v", kind, limits)
		}
	}
}

// execTakesTooMuch has a command of exec reach its limit, in a cgroup of its own.
func execTakesTooMuch(t *testing.T, w *harness.World, victim string) {
	t.Helper()
	dir, err := ownCgroup(t)
	harness.Must(t, err)
	command := exec.Command(harness.Binary(t), "exec", "--kind", "tool", "--", victim, "take", "private", "200")
	command.Env, command.Dir = harness.Environ(w), w.Project
	inCgroup(t, dir)(command)
	output, _ := command.CombinedOutput()
	const want = `sandbox-sidecar: note: The kernel ended the command at 64 MB of memory; "limits.memory" sets it` +
		"\n"
	said := harness.Unfold(string(output))
	if end := command.ProcessState.String(); end != "signal: killed" || strings.Count(said, want) != 1 {
		t.Errorf("exec: %s\n%s", end, output)
	}
}

// execLeavesItsCgroup has one command after another start in a cgroup: each leaves
// it as it was, or the next could not be started there.
func execLeavesItsCgroup(t *testing.T, w *harness.World) {
	t.Helper()
	dir, err := ownCgroup(t)
	harness.Must(t, err)
	in := inCgroup(t, dir)
	for range 2 {
		command := exec.Command(harness.Binary(t), "exec", "--", "true")
		command.Env, command.Dir = harness.Environ(w), w.Project
		in(command)
		output, err := command.CombinedOutput()
		left := strings.TrimSpace(harness.Read(t, filepath.Join(dir, "cgroup.subtree_control")))
		if err != nil || left != "" {
			t.Errorf("exec: %v, and its cgroup gives the controllers %q\n%s", err, left, output)
		}
	}
}

func inCgroup(t *testing.T, dir string) func(*exec.Cmd) {
	t.Helper()
	return wrapped(t, "cgroup_delegation", "/bin/sh", "-c", `echo $$ >"$1"/cgroup.procs && shift && exec "$@"`, "sh",
		dir)
}

func toldOf(told *toldLimits, s *harness.Session) []protocol.LimitParams {
	return slices.DeleteFunc(told.all(), func(l protocol.LimitParams) bool { return l.SessionID != s.SessionID })
}

// Of fifty sessions that all take too much at once, each ends at its limit and is
// told of once. Another session has its answers meanwhile. This test is not
// parallel, because it measures time.
func TestLimits_OfFiftySessionsThatTakeTooMuch(t *testing.T) {
	dir, refused := ownCgroup(t)
	if refused != nil {
		if os.Getenv("SIDECAR_HAS") == "memory_limits" {
			t.Fatal(refused)
		}
		t.Logf("no cgroup can be given to a sidecar: %v", refused)
		return // as in TestLimits_InACgroupOfTheSidecarsOwn
	}
	const least = 64 // MB; settings can ask for no less
	if there := availableMemory(t); there < fifty*least+512 {
		harness.Skip(t, "memory", fmt.Sprintf("fifty sessions with %d MB each need more than %d MB", least, there))
	}
	w := harness.NewWorld(t)
	e := harness.Start(t, w, harness.Options{Settings: harness.Defaults(harness.Sandbox{
		"limits": map[string]any{"memory": fmt.Sprintf("%dM", least)},
	}), Wrap: inCgroup(t, dir)})
	victim := filepath.Join(w.Project, "victim")
	harness.Victim(t, "tests/victim", victim)
	other, told := e.Shell(), listenForLimits(e)
	start, line := startTogether(t, w)
	kinds := []string{"private", "shared", "memfd"} // which end with their processes
	var storms []*harness.Session
	for i := range fifty {
		storms = append(storms, e.Spawn(protocol.SpawnParams{
			Kind:    protocol.Tool,
			Command: fmt.Sprintf("%s%s take %s %d; echo survived", line, victim, kinds[i%len(kinds)], tooMuch),
		}))
	}
	before := mustEcho(t, e, other, "calm")
	start(fifty)
	during := mustEcho(t, e, other, "storm")
	t.Logf("the slowest echo took %s during the storm, and %s before", during, before)
	var ending sync.WaitGroup
	for _, s := range storms {
		ending.Go(func() {
			if exit := s.Exit(); exit.ExitCode != nil || strings.Contains(s.Output(), "survived") {
				t.Errorf("it ended with %+v: %s", exit, s.Output())
			}
			if limits := toldOf(told, s); len(limits) != 1 || limits[0].Setting != "limits.memory" {
				t.Errorf("told: %+v", limits)
			}
		})
	}
	ending.Wait()
	if limits := toldOf(told, other); len(limits) != 0 {
		t.Errorf("told of a session that took nothing: %+v", limits)
	}
	mustEcho(t, e, other, "after")
	mustCloseSoon(t, e, []*harness.Session{other})
}

// availableMemory is what the machine has left, in MB.
func availableMemory(t *testing.T) (megabytes int) {
	t.Helper()
	for line := range strings.Lines(harness.Read(t, "/proc/meminfo")) {
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &megabytes); n == 1 {
			return megabytes >> 10
		}
	}
	t.Fatal("/proc/meminfo has no MemAvailable")
	return 0
}

// inMemory reports whether files in a directory are memory.
func inMemory(t *testing.T, dir string) bool {
	t.Helper()
	var stat unix.Statfs_t
	harness.Must(t, unix.Statfs(dir, &stat))
	return stat.Type == unix.TMPFS_MAGIC
}

// mustHave compares the files of a session's cgroup.
func mustHave(t *testing.T, s *harness.Session, files map[string]string) {
	t.Helper()
	own := harness.Read(t, fmt.Sprintf("/proc/%d/cgroup", s.PID))
	_, path, _ := strings.Cut(own, "0::")
	for name, want := range files {
		file := filepath.Join("/sys/fs/cgroup", strings.TrimSpace(path), name)
		if got := strings.TrimSpace(harness.Read(t, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}
