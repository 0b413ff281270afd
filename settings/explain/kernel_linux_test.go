package explain

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/linux"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// maze is a random tree: directories with files and programs in them, and
// symlinks that lead anywhere.
type maze struct {
	root   string
	random *rand.Rand
	made   int      // makes unique names
	paths  []string // everything that was made, links included, and some names that were not
}

func newMaze(t *testing.T, random *rand.Rand) *maze {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	m := &maze{root: root, random: random}
	program, err := exec.LookPath("true")
	must(t, err)
	code, err := os.ReadFile(program)
	must(t, err)
	dirs := []string{root}
	for _, name := range []string{"home", "home/project", "home/.config", "home/.cache"} {
		dirs = append(dirs, m.dir(t, filepath.Join(root, name)))
	}
	for i := range 12 {
		dirs = append(dirs, m.dir(t, filepath.Join(dirs[random.IntN(len(dirs))], fmt.Sprintf("d%d", i))))
	}
	for _, dir := range dirs {
		m.file(t, filepath.Join(dir, "data"), []byte("data"), 0o600)
		// Each place has its own program: a rule for one hard link would hold
		// for all.
		m.file(t, filepath.Join(dir, "true"), code, 0o700)
		m.paths = append(m.paths, filepath.Join(dir, "missing"), filepath.Join(dir, "missing/deeper"))
	}
	for i := range 16 {
		link, target := filepath.Join(dirs[random.IntN(len(dirs))], fmt.Sprintf("l%d", i)), m.pick()
		if random.IntN(2) == 0 {
			relative, err := filepath.Rel(filepath.Dir(link), target)
			must(t, err)
			target = relative
		}
		must(t, os.Symlink(target, link))
		m.paths = append(m.paths, link, link+"/data", link+"/true", link+"/../data")
	}
	return m
}

// share lets everybody read the files, so that none is private.
func (m *maze) share(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir(m.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return os.Chmod(path, 0o755)
	}))
}

func (m *maze) dir(t *testing.T, path string) string {
	t.Helper()
	must(t, os.Mkdir(path, 0o700))
	m.paths = append(m.paths, path)
	return path
}

func (m *maze) file(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, content, mode))
	m.paths = append(m.paths, path)
}

func (m *maze) pick() string { return m.paths[m.random.IntN(len(m.paths))] }

func (m *maze) some(most int) []string {
	list := []string{}
	for range m.random.IntN(most + 1) {
		list = append(list, m.pick())
	}
	return list
}

// settings are random grants in the maze and nowhere else.
func (m *maze) settings(t *testing.T) string {
	t.Helper()
	// The maze lies in /tmp.
	system, temporary := [][]string{{}, {"/tmp"}}, []string{"private", "shared"}
	data, err := json.Marshal(map[string]any{
		"enabled": true, "protected_paths": []string{"!*"},
		"system_paths": map[string]any{
			"executable": m.some(2), "read_only": m.some(2),
			"read_write": system[m.random.IntN(2)],
		},
		"temporary_files": temporary[m.random.IntN(2)], "hidden_paths": m.some(3),
		"additional_read_only_paths":  m.some(3),
		"additional_executable_paths": m.some(3), "additional_read_write_paths": m.some(2),
	})
	must(t, err)
	return string(data)
}

// act is how an attempt is really made; false if it makes no sense for the
// target.
func (m *maze) act(attempt Attempt, path string, r *resolve.View) (platformtest.Act, bool) {
	m.made++
	end := r.Resolve(path)
	dir, program := end.Exists && end.Mode.IsDir(), filepath.Base(end.Path) == "true"
	switch {
	case attempt == Read && dir:
		return platformtest.Act{Verb: platformtest.List, Path: path}, true
	case attempt == Read && end.Exists:
		return platformtest.Act{Verb: platformtest.Read, Path: path}, true
	case attempt == Write && dir:
		return platformtest.Act{Verb: platformtest.Create, Path: fmt.Sprintf("%s/new-%d", path, m.made)}, true
	case attempt == Write && end.Exists && !program: // programs must not change
		return platformtest.Act{Verb: platformtest.Write, Path: path}, true
	case attempt == Write && !end.Exists && isDir(r, filepath.Dir(end.Path)):
		return platformtest.Act{Verb: platformtest.Create, Path: fmt.Sprintf("%s-%d", path, m.made)}, true
	case attempt == Execute && end.Exists && program:
		return platformtest.Act{Verb: platformtest.Execute, Path: path}, true
	}
	return platformtest.Act{}, false
}

func isDir(r *resolve.View, path string) bool {
	target := r.Resolve(path)
	return target.Exists && target.Mode.IsDir()
}

// The model agrees with the kernel: for random settings and random targets,
// through symlinks and "..", Why predicts the result of a real attempt in a
// real sandbox. SIDECAR_EXPLAIN_POLICIES makes it longer.
func TestExplain_AgreesWithTheKernel(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	policies, random := harness.Generated(t, 30, 3)
	asked, allowed := 0, 0
	var m *maze
	for i := range policies {
		if i%5 == 0 {
			m = newMaze(t, random)
		}
		a, b := m.compare(t)
		asked, allowed = asked+a, allowed+b
	}
	t.Logf("%d policies, %d attempts, %d of them allowed", policies, asked, allowed)
	if allowed == 0 || allowed == asked {
		t.Errorf("of %d attempts %d were allowed: this compares nothing", asked, allowed)
	}
}

// compare makes attempts under one random policy.
func (m *maze) compare(t *testing.T) (asked, allowed int) {
	t.Helper()
	block := m.settings(t)
	s := &compile.Snapshot{Input: compile.Input{
		Host: resolve.Host{
			Platform: "linux", Home: filepath.Join(m.root, "home"), Root: os.Geteuid() == 0, Env: map[string]string{},
		},
		FS: resolve.OS, ProjectDir: filepath.Join(m.root, "home/project"),
		UserStates: []source.State{settingstest.State(t, filepath.Join(m.root, "home/.config/settings.json"), block)},
	}}
	resolver := resolve.NewView(resolve.OS)
	var acts []platformtest.Act
	var explained []Answer
	for range 80 {
		attempt, path := Attempts()[m.random.IntN(3)], m.pick()
		act, sensible := m.act(attempt, path, resolver)
		if !sensible {
			continue
		}
		x, err := Why(s, document.KindTool, attempt, act.Path)
		if err != nil {
			t.Fatal(err)
		}
		if x.Allowed && attempt == Write && strings.HasPrefix(x.Hint, "only the project's sessions see") {
			continue // the directory that the file would be in is not there inside
		}
		acts, explained = append(acts, act), append(explained, x)
	}
	results, fileTree, unseen := attemptAll(t, s, acts)
	for i, result := range results {
		x := explained[i]
		if x.Allowed {
			allowed++
		}
		refused := result.Refused()
		if fileTree && (acts[i].Verb == platformtest.Write || acts[i].Verb == platformtest.Create) {
			refused = result.Errno == unix.EROFS || unseen.hides && result.Errno == unix.EACCES
		}
		if strings.Contains(x.Reason, "is hidden") && os.Geteuid() == 0 && acts[i].Verb == platformtest.List &&
			result.OK() {
			continue // root may list the empty directory
		}
		// Nothing is there inside.
		refused = refused || (unseen.hides || unseen.ownTemporary) && result.Errno == unix.ENOENT
		refused = refused || result.Errno == unix.ELOOP ||
			resolver.Resolve(acts[i].Path).Detour && (result.Errno == unix.ENOTDIR || result.Errno == unix.ENOENT)
		if x.Allowed != result.OK() || !x.Allowed && !refused {
			harness.Breach(t, "%s: the model says %t (%s), the kernel says %q\nsettings %s", acts[i], x.Allowed, x.Reason,
				result.Error, block)
		}
	}
	return len(acts), allowed
}

// attemptAll makes the attempts in one session that starts under the snapshot's
// policy. fileTree says that the session has a file tree of its own.
func attemptAll(t *testing.T, s *compile.Snapshot, acts []platformtest.Act) (
	results []platformtest.Result, fileTree bool, unseen unseenPaths,
) {
	t.Helper()
	compiled := s.Compile(document.KindTool).Policy
	p := platformtest.Policy(t, compiled.Rules...)
	p.Temporary, p.Hidden = compiled.Temporary, compiled.Hidden
	for i := range p.Temporary {
		p.Temporary[i].Source = t.TempDir()
	}
	backend := linux.Backend{}
	results, enforcement := platformtest.Perform(t, backend, platformtest.Confined(t, backend, p, acts...))
	if enforcement.Protections[platform.Filesystem].Status != platform.Enforced {
		t.Fatalf("not confined: %+v", enforcement)
	}
	if len(results) != len(acts) {
		t.Fatalf("%d results for %d acts", len(results), len(acts))
	}
	return results, enforcement.Protections[platform.FileTree].Status == platform.Enforced,
		unseenPaths{hides: len(p.Hidden) > 0, ownTemporary: len(p.Temporary) > 0}
}

// unseenPaths says why a session may not see what is at a path outside.
type unseenPaths struct{ hides, ownTemporary bool }
