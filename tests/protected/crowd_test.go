//go:build linux

package protected

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func spawnIn(e *harness.Editor, dir, line string) *harness.Session {
	return e.Spawn(protocol.SpawnParams{
		Kind: protocol.Tool, Command: "/bin/sh", Args: []string{"-c", line}, Cwd: dir, ProjectDir: dir,
	})
}

// mustCostAsMuch compares the processor time of sessions in a project with as many
// files as the bounds let the sidecar look at, and in one with more. Other tests
// take turns with this one.
func mustCostAsMuch(t *testing.T, e *harness.Editor, bound, crowded string, files int) {
	t.Helper()
	var start, end struct{ bound, crowded time.Duration }
	cost := func(dir string) (start, end time.Duration) {
		before := harness.ProcessorTime(t, e.Process())
		session := spawnIn(e, dir, "read line")
		started := harness.ProcessorTime(t, e.Process())
		session.Close(0)
		return started - before, harness.ProcessorTime(t, e.Process()) - started
	}
	cost(bound)
	for range 5 {
		begin, finish := cost(bound)
		start.bound, end.bound = start.bound+begin, end.bound+finish
		begin, finish = cost(crowded)
		start.crowded, end.crowded = start.crowded+begin, end.crowded+finish
	}
	t.Logf("five sessions within the bounds and with %d files: starts %v, ends %v", files, start, end)
	if start.crowded > 8*start.bound {
		t.Errorf("%d files make starts of %v take %v", files, start.bound, start.crowded)
	}
	if end.crowded > 8*end.bound {
		t.Errorf("%d files make ends of %v take %v", files, end.bound, end.crowded)
	}
}

// startCrowded starts an editor with two repositories that a function fills: one
// with as many files as the bounds let the sidecar look at, and the project itself
// with many more. Sessions must cost as much in both.
func startCrowded(
	t *testing.T, s *scene, bound int, fill func(project string, files int),
) (e *harness.Editor, crowded string) {
	t.Helper()
	files := 100_000
	if testing.Short() {
		files = 20_000
	}
	within := filepath.Join(s.Home, "bound")
	for project, count := range map[string]int{s.Project: files, within: bound} {
		s.repository(project)
		fill(project, count)
	}
	e = s.start(harness.Defaults(nil), harness.Machine{}).Editor
	mustCostAsMuch(t, e, within, s.Project, files)
	return e, s.Project
}

// A repository has 100,000 refs that are files. A session costs the sidecar no
// more there than with as many as it compares, and what a session stores in a new
// branch is said all the same.
func TestManyRefsDelayNoSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	e, crowded := startCrowded(t, s, 1800, func(project string, refs int) {
		id := strings.TrimSpace(s.git(project, "rev-parse", "HEAD"))
		for i := range refs {
			path := filepath.Join(project, ".git/refs/heads/many", strconv.Itoa(i%100), strconv.Itoa(i))
			if i < 100 {
				harness.MakeDir(t, filepath.Dir(path))
			}
			harness.Must(t, os.WriteFile(path, []byte(id+"\n"), 0o600))
		}
	})

	session := spawnIn(e, crowded, "mkdir .vscode 2>/dev/null; git checkout -q -b evil && echo {} >t && "+
		"git update-index --add --cacheinfo 100644,$(git hash-object -w t),.vscode/tasks.json && git commit -qm evil; "+
		"git checkout -q -f -")
	session.Exit()
	result, said := session.Close(0), false
	for _, f := range result.Review {
		switch strings.TrimPrefix(f.Path, crowded) {
		case "/.vscode/tasks.json":
			said = said || strings.Contains(f.Message, `branch "evil"`)
		case "/.git/refs": // too many to search in time
			said = true
		}
	}
	if !said {
		harness.Breach(t, "a branch with tasks of the editor: %s%+v", session.Output(), result.Review)
	}
}

// A directory that programs outside act on holds 100,000 files. A session costs
// the sidecar no more there than with as many files as the bounds let it look
// at. What it did not record cannot be changed unnoticed: the review names the
// directory, and git's own one is read-only.
func TestACrowdedDirectoryDelaysNoSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	e, crowded := startCrowded(t, s, 1000, func(project string, files int) {
		harness.MakeDir(t, filepath.Join(project, ".husky"))
		for i := range files {
			harness.Must(t, os.WriteFile(filepath.Join(project, ".husky", "a"+strconv.Itoa(i)), nil, 0o600))
		}
	})

	run := func(line string) (protocol.CloseResult, string) {
		session := spawnIn(e, crowded, line)
		session.Exit()
		return session.Close(0), session.Output()
	}
	result, output := run("echo evil >.husky/zzz")
	i := slices.IndexFunc(result.Review, func(f protocol.Finding) bool {
		return f.Path == filepath.Join(crowded, ".husky") && strings.Contains(f.Message, "too many")
	})
	if i < 0 {
		harness.Breach(t, "a new hook among them: the review says %+v\n%s", result.Review, output)
	}
	s.git(crowded, "config", "core.hooksPath", ".husky")
	_, output = run("echo evil >.husky/pre-commit")
	if !strings.Contains(output, "Read-only file system") {
		harness.Breach(t, "git runs what a session writes there: %s", output)
	}
}
