//go:build linux

package temporary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A repository above the project that holds a secret of the table is closed, and
// the reply says so. Once it holds none, sessions read it.
func TestSecrets_ARepositoryAboveThatHoldsThemIsClosed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "hidden_paths")
	harness.RequirePrograms(t, "git")
	w := harness.NewWorldOutsideDefaults(t)
	secrets, innocent := plantSecrets(t, w, true)
	e := start(t, w, nil)
	const some = 6
	for i, dir := range dirsOf(innocent) {
		if dir == "." || dir == ".nvm" || testing.Short() && i%some != 0 {
			continue // a home directory is no such repository, and .nvm holds no secret
		}
		top := w.HomePath(dir)
		repository := filepath.Join(top, ".git")
		for _, name := range []string{"objects", "refs"} {
			harness.MakeDir(t, filepath.Join(repository, name))
		}
		harness.Write(t, filepath.Join(repository, "HEAD"), "ref: refs/heads/main\n")
		harness.Write(t, filepath.Join(repository, "config"), "[core]\n\trepositoryformatversion = 0\n")
		project := filepath.Join(top, "package")
		harness.Write(t, filepath.Join(project, "own"), "OWN\n")
		paths := []string{filepath.Join(top, "innocent")}
		var inside []secret
		for _, one := range secrets {
			if strings.HasPrefix(one.at, dir+"/") {
				inside, paths = append(inside, one), append(paths, w.HomePath(one.file))
			}
		}
		try := func() (closed bool, output string) {
			session := e.Spawn(protocol.SpawnParams{
				Kind: protocol.Tool, Cwd: project, ProjectDir: project, Command: search(paths...) + "; cat own",
			})
			session.Exit()
			if output = session.Output(); !strings.Contains(output, "OWN") {
				t.Errorf("control: %s: the project's own file: %s", dir, output)
			}
			said := strings.Join(session.Sandbox.Warnings, "\n")
			return strings.Contains(said, "above the project is closed: it holds "), output
		}
		closed, output := try()
		read := found(output)
		if !closed {
			harness.Breach(t, "%s: the reply does not say that it is closed", dir)
		}
		if read[innocent[dir]] && !ofConfig(dir) { // which sessions read anyway
			harness.Breach(t, "%s: it is open: %s", dir, output)
		}
		for _, one := range inside {
			if one.Hidden() && read[one.token] {
				harness.Breach(t, "%s (%s) is read", one.Path, one.Secret)
			}
			harness.Must(t, os.RemoveAll(w.HomePath(one.at)))
		}
		if closed, output = try(); closed || !found(output)[innocent[dir]] {
			t.Errorf("control: %s: without secrets it is closed (%t): %s", dir, closed, output)
		}
		harness.Must(t, os.RemoveAll(repository))
	}
}
