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

// A directory that programs outside act on holds 100,000 files. The start of a
// session stops at the bound. What it did not record cannot be changed
// unnoticed: the review names the directory, and git's own one is read-only.
func TestACrowdedDirectoryDelaysNoSession(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	crowded, plain := s.Project, filepath.Join(s.Home, "plain")
	s.repository(plain)
	files := 100_000
	if testing.Short() {
		files = 20_000
	}
	harness.MakeDir(t, filepath.Join(crowded, ".husky"))
	for i := range files {
		harness.Must(t, os.WriteFile(filepath.Join(crowded, ".husky", "a"+strconv.Itoa(i)), nil, 0o600))
	}
	e := s.start(harness.Defaults(nil), harness.Machine{})
	run := func(dir, line string) (end protocol.CloseResult, output string, start, whole time.Duration) {
		begun := time.Now()
		session := e.Spawn(protocol.SpawnParams{
			Kind: protocol.Tool, Command: "/bin/sh", Args: []string{"-c", line}, Cwd: dir, ProjectDir: dir,
		})
		start = time.Since(begun)
		session.Exit()
		return session.Close(0), session.Output(), start, time.Since(begun)
	}
	// The fastest of several, in turns: other tests disturb all of them.
	type times struct{ start, whole time.Duration }
	fastest := map[string]times{}
	for range 15 {
		for _, dir := range []string{plain, crowded} {
			_, _, start, whole := run(dir, "true")
			if known, tried := fastest[dir]; tried {
				start, whole = min(start, known.start), min(whole, known.whole)
			}
			fastest[dir] = times{start, whole}
		}
	}
	t.Logf("fastest: %+v without, %+v with %d files", fastest[plain], fastest[crowded], files)
	if fastest[crowded].start > 4*fastest[plain].start {
		t.Errorf("%d files make a start of %v take %v", files, fastest[plain].start, fastest[crowded].start)
	}
	// The review at the end takes 200 ms at most.
	if fastest[crowded].whole > 4*fastest[plain].whole+200*time.Millisecond {
		t.Errorf("%d files make a session of %v take %v", files, fastest[plain].whole, fastest[crowded].whole)
	}

	end, output, _, _ := run(crowded, "echo evil >.husky/zzz")
	i := slices.IndexFunc(end.Review, func(f protocol.Finding) bool {
		return f.Path == filepath.Join(crowded, ".husky") && strings.Contains(f.Message, "too many")
	})
	if i < 0 {
		t.Errorf("a new hook among them: the review says %+v\n%s", end.Review, output)
	}
	s.git(crowded, "config", "core.hooksPath", ".husky")
	_, output, _, _ = run(crowded, "echo evil >.husky/pre-commit")
	if !strings.Contains(output, "Read-only file system") {
		t.Errorf("git runs what a session writes there: %s", output)
	}
}
