//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// Inspects the sidecar by its files in /proc: the environment, which holds what
// the session must not get, the memory map, the working directory, the root,
// the open files. A session may not inspect a process outside
// (ptrace_may_access).
func TestTheSidecarCannotBeInspected(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	try := func(settings string, actions func(pid int, s *scene) []string) (r result, refused bool) {
		s := newScene(t)
		secretOutside(s)
		e := harness.Start(t, s.World, harness.Options{
			Settings: settings, Env: []string{"TOKEN=" + secretText},
			Wrap: func(command *exec.Cmd) {
				file, err := os.Open(s.OutsidePath("secret"))
				harness.Must(t, err)
				t.Cleanup(func() { file.Close() })
				command.ExtraFiles = []*os.File{file}
			},
		})
		r = s.attempt(e, actions(e.Process(), s)...)
		return r, r.refusedOf(e.Process(), "EACCES")
	}
	for name, actions := range map[string]func(pid int, s *scene) []string{
		"environ": func(pid int, _ *scene) []string { return []string{"read", fmt.Sprintf("/proc/%d/environ", pid)} },
		"maps":    func(pid int, _ *scene) []string { return []string{"read", fmt.Sprintf("/proc/%d/maps", pid)} },
		// The secret is open in descriptor 3. That a descriptor exists is
		// metadata, and can be seen.
		"fd":  func(pid int, _ *scene) []string { return []string{"read", fmt.Sprintf("/proc/%d/fd/3", pid)} },
		"cwd": func(pid int, _ *scene) []string { return []string{"list", fmt.Sprintf("/proc/%d/cwd/", pid)} },
		"root": func(pid int, s *scene) []string {
			return []string{"read", fmt.Sprintf("/proc/%d/root%s", pid, s.OutsidePath("secret"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control, _ := try(harness.Off(), actions)
			if !control.done() || len(control.output) < 10 {
				t.Fatalf("control: without a sandbox it must work: status %d\n%s", control.status, control.output)
			}
			if result, refused := try("", actions); !refused || strings.Contains(result.output, secretText) {
				t.Errorf("want a refusal with EACCES, got status %d:\n%s", result.status, result.output)
			}
		})
	}
}

// Writes to the cgroup tree to leave the session's group: into the cgroup that
// holds the sidecar, and into a new one. The tree is not granted, so that no
// process of a sandboxed session can move itself or another.
func TestASessionCannotLeaveItsCgroup(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	tree := cgroupOfTest(t)
	for name, actions := range map[string]func(own string) []string{
		"to an existing one": func(string) []string { return []string{"append", tree + "/cgroup.procs", "0"} },
		"to a new one": func(own string) []string {
			return []string{"mkdir", own, "then", "append", own + "/cgroup.procs", "0"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack{
				actions: func(*scene) []string {
					own := filepath.Join(tree, fmt.Sprintf("attack-%d-%d", os.Getpid(), cgroups.Add(1)))
					t.Cleanup(func() {
						harness.Eventually(t, "remove "+own, func() bool { _ = os.Remove(own); return !exists(own) })
					})
					// The first output is the cgroup that the session must be
					// in, the second the one that it reached.
					return append(append([]string{"cgroup", "then"}, actions(own)...), "then", "cgroup")
				},
				harm: func(_ *scene, output string) bool {
					lines := unified(output)
					return len(lines) == 2 && lines[0] != lines[1]
				},
			}.mustFail(t)
		})
	}
}

// Kills the session's group from inside by its own file, and freezes it. The
// tree is not granted.
func TestASessionCannotControlItsCgroup(t *testing.T) {
	t.Parallel()
	harness.Require(t, "process_tracking")
	mount, _ := cgroupMount(t)
	try := func(settings string) (string, bool) {
		s := newScene(t)
		e := s.Start(settings)
		session := e.Shell()
		own := unified(harness.Read(t, fmt.Sprintf("/proc/%d/cgroup", session.PID)))[0]
		file := filepath.Join(mount, own, "cgroup.max.descendants")
		session.Type(fmt.Sprintf("echo 7 >'%s'; echo tried''it\n", file))
		session.Await("triedit")
		return session.Output(), strings.TrimSpace(harness.Read(t, file)) == "7"
	}
	if output, changed := try(harness.Off()); !changed {
		t.Fatalf("control: without a sandbox it must work:\n%s", output)
	}
	if output, changed := try(""); changed {
		harness.Breach(t, "THE ATTACK WORKS:\n%s", output)
	}
}

// cgroups and sockets number those that attacks make.
var cgroups, sockets atomic.Int64

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// unified finds the v2 entries among lines of /proc/PID/cgroup.
func unified(text string) []string {
	var paths []string
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// cgroupMount is where cgroup v2 is mounted, and the part of the tree that is
// visible there.
func cgroupMount(t testing.TB) (point, root string) {
	t.Helper()
	for line := range strings.Lines(harness.Read(t, "/proc/self/mountinfo")) {
		before, after, _ := strings.Cut(line, " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4], fields[3]
		}
	}
	harness.Skip(t, "process_tracking", "no cgroup2 mount")
	return "", ""
}

// cgroupOfTest is the directory of this process's own cgroup, in which the
// sidecars make theirs.
func cgroupOfTest(t testing.TB) string {
	t.Helper()
	mount, root := cgroupMount(t)
	own := unified(harness.Read(t, "/proc/self/cgroup"))
	if len(own) == 0 {
		t.Fatal("this process is in no cgroup v2")
	}
	rel, err := filepath.Rel(root, own[0])
	harness.Must(t, err)
	return filepath.Join(mount, rel)
}
