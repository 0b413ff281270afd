//go:build linux

package attack

import (
	"os"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// rogueScene is a scene outside of the temporary directories, which the default
// settings open, with files as in a home directory.
func rogueScene(t testing.TB) *scene {
	t.Helper()
	w := harness.NewWorldOutsideDefaults(t)
	w.Project = w.HomePath("project")
	harness.MakeDir(t, w.Project)
	s := &scene{harness.NewSceneIn(t, w, "tests/victim")}
	for path, content := range map[string]string{
		s.ProjectPath("main.rs"): "fn main() {}\n", s.OutsidePath("secret"): secretText,
		s.HomePath("Documents/letter"): secretText,
		s.HomePath(".ssh/id_ed25519"):  secretText, s.HomePath(".ssh/config"): secretText,
		s.HomePath(".zshrc"):           "alias visible=true\n",
		s.HomePath(".cargo/bin/cargo"): "#!/bin/sh\necho compiled \"$@\"\n",
	} {
		harness.Write(t, path, content)
	}
	harness.Must(t, os.Chmod(s.HomePath(".cargo/bin/cargo"), 0o755))
	return s
}

// row is a line of the table of what a rogue agent can and cannot do under the
// default settings.
type row struct {
	// keys are set beside the defaults.
	keys    harness.Sandbox
	prepare func(s *scene)
	// line is run by /bin/sh in the project.
	line func(s *scene) string
	// works reports whether the action had its effect.
	works func(s *scene, output string) bool
}

// can makes sure that the action works with the defaults, and without a
// sandbox; cannot, that it works only without one.
func (r row) can(t *testing.T)    { r.check(t, true) }
func (r row) cannot(t *testing.T) { r.check(t, false) }

func (r row) check(t *testing.T, want bool) {
	t.Helper()
	t.Parallel()
	harness.Require(t, "filesystem")
	if output, works := r.run(t, harness.Off()); !works {
		t.Fatalf("control: without a sandbox it must work:\n%s", output)
	}
	if output, works := r.run(t, harness.Defaults(r.keys)); works != want {
		t.Errorf("with default settings: works: %v, want %v:\n%s", works, want, output)
	}
}

func (r row) run(t *testing.T, settings string) (string, bool) {
	t.Helper()
	s := rogueScene(t)
	if r.prepare != nil {
		r.prepare(s)
	}
	output, _ := s.Start(settings).Tool(r.line(s))
	return output, r.works(s, output)
}

func shows(text string) func(*scene, string) bool {
	return func(_ *scene, output string) bool { return strings.Contains(output, text) }
}
