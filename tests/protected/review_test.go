//go:build linux

package protected

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// plants writes what programs outside act upon, in subdirectories and among the
// files of a build.
const plants = `mkdir -p a/.vscode a/b/.venv/bin a/b/c/.claude node_modules/.bin
echo x >a/.vscode/tasks.json; echo x >a/b/.venv/bin/python; echo x >a/b/c/.claude/settings.json; echo x >a/AGENTS.md
echo x >node_modules/.bin/eslint; echo x >Makefile; echo x >a/Makefile; echo x >a/b/package.json; echo x >main.c
touch -d 2001-01-01 a/.vscode/tasks.json a/.vscode; true`

// The review names what is protected in the project if it comes in a
// subdirectory, and what builds run in one line.
func TestTheReviewCoversSubdirectories(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	_, output, status, end := s.start(harness.Defaults(nil), harness.Machine{}).run(plants)
	if status != 0 {
		t.Fatalf("status %d: %s", status, output)
	}
	want := []string{
		"changed a/.vscode", "changed a/b/c/.claude", "changed a/AGENTS.md",
		"changed Makefile", "changed node_modules/.bin",
	}
	if found := s.review(end); !slices.Equal(found, want) {
		t.Errorf("review: %q", found)
	}
	builds := end.Review[3]
	if len(builds.Others) != 2 || !strings.HasPrefix(builds.Message, "3 build files were ") {
		t.Errorf("%+v", builds)
	}
}

// exec prints the same after the command, and "git init" takes one line.
func TestExecPrintsTheReview(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for line, want := range map[string][]string{
		plants: {
			`a/.vscode" was changed: `, "3 build files were ", "a/b/c/.claude", "AGENTS.md", "node_modules/.bin",
		},
		"git init -q .":    {`.git" was created: `},
		"echo x >other.go": nil,
	} {
		s := newScene(t)
		harness.Write(t, s.UserSettings(), harness.Defaults(nil))
		command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c", line)
		command.Dir, command.Env = s.Project, harness.Environ(s.World)
		out, err := command.CombinedOutput()
		lines := len(want)
		if lines > 0 {
			lines++ // what they are
		}
		text := harness.Unfold(string(out))
		lacks := func(part string) bool { return !strings.Contains(text, part) }
		if err != nil || strings.Count(text, "\n") != lines || slices.ContainsFunc(want, lacks) {
			t.Errorf("%s: %v: %s", line, err, out)
		}
	}
}
