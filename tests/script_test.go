package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// TestScript runs script/*.txtar: what an editor sees, written as a shell
// session. The commands are those of testscript and of script/README.md.
// A script starts in $WORK, which holds home, project and outside. HOME,
// PROJECT, OUTSIDE, USER_SETTINGS and PROJECT_SETTINGS are set, and
// sandbox-sidecar is in PATH.
func TestScript(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	binary := harness.Binary(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands,
		Setup: func(env *testscript.Env) error {
			root, err := filepath.EvalSymlinks(env.WorkDir)
			if err != nil {
				return err
			}
			world := &harness.World{
				Home: filepath.Join(root, "home"), Project: filepath.Join(root, "project"),
				Outside: filepath.Join(root, "outside"),
			}
			for _, dir := range []string{world.Home, world.Project, world.Outside} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					return err
				}
			}
			for _, entry := range harness.Environ(world) {
				name, value, _ := strings.Cut(entry, "=")
				env.Setenv(name, value)
			}
			env.Setenv("PATH", filepath.Dir(binary)+":"+env.Getenv("PATH"))
			env.Setenv("PROJECT", world.Project)
			env.Setenv("OUTSIDE", world.Outside)
			env.Setenv("USER_SETTINGS", world.UserSettings())
			env.Setenv("PROJECT_SETTINGS", filepath.Join(world.Project, ".zed", "settings.json"))
			s := &scene{world: world, binary: binary, read: map[string]int{}}
			env.Values[sceneKey{}] = s
			env.Defer(s.end)
			s.t = env.T().(testing.TB)
			return nil
		},
	})
}
