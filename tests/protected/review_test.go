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

// What a session leaves where the review does not look, and the next one moves
// with the directory around it, is as old as before. The review names it.
func TestTheReviewNamesWhatComesWithADirectory(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	_, output, status, end := e.run("mkdir -p node_modules/a && cd node_modules/a && git init -q r && " +
		"mkdir .vscode && echo x >.vscode/tasks.json && echo all: >Makefile")
	if status != 0 || len(end.Review) > 0 {
		t.Fatalf("where it does not look: status %d, %+v: %s", status, end.Review, output)
	}
	_, output, status, end = e.run("mv node_modules/a src")
	if status != 0 {
		t.Fatalf("status %d: %s", status, output)
	}
	want := []string{"changed src/.vscode", "created src/r/.git", "changed src/Makefile"}
	if found := s.review(end); !slices.Equal(found, want) {
		harness.Breach(t, "review: %q", found)
	}
	if _, output, _, end = e.run("mv src lib"); len(end.Review) > 0 {
		t.Errorf("it is known: %+v: %s", end.Review, output)
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

// What Python runs whenever it starts is found below any version of it, in the
// project and in its subdirectories. A library is not listed.
func TestTheReviewCoversWhatPythonRunsFirst(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const sites = ".venv/lib/python3.12/site-packages"
	for _, dir := range []string{"", "a/b/"} {
		s := newScene(t)
		harness.MakeDir(t, s.ProjectPath(dir+sites))
		_, output, status, end := s.start(harness.Defaults(nil), harness.Machine{}).run(
			"cd ./" + dir + sites + " && echo x >x.pth && echo x >library.py && echo x >sitecustomize.py")
		if status != 0 {
			t.Fatalf("status %d: %s", status, output)
		}
		// One line for the group, with the nearest path first.
		want := []string{"changed " + dir + sites + "/sitecustomize.py"}
		if found := s.review(end); !slices.Equal(found, want) {
			t.Errorf("review: %q", found)
		}
		if len(end.Review) != 1 || len(end.Review[0].Others) != 1 {
			t.Errorf("%+v", end.Review)
		}
	}
}

// What CI services, editors and build tools run without being asked is listed.
// Before, each of these was silent.
func TestTheReviewCoversNewNames(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	names := []string{
		"jsconfig.json", ".formatter.exs", ".gitattributes", ".env", ".pnp.cjs", ".pnp.loader.mjs",
		".agents/skills/x/SKILL.md", ".buildkite/pipeline.yml", ".forgejo/workflows/ci.yml", ".gitea/workflows/ci.yml",
		"bitbucket-pipelines.yml", ".cirrus.yml", "appveyor.yml", ".build.yml", ".teamcity/settings.kts",
		".tekton/pull.yaml", "dagger.json", "Earthfile", ".luacheckrc", "phpstan.neon", ".golangci.yml", ".gdbinit",
	}
	s := newScene(t)
	_, output, status, end := s.start(harness.Defaults(nil), harness.Machine{}).run(
		"for f in " + strings.Join(names, " ") + "; do mkdir -p $(dirname $f) && echo x >$f || exit; done; echo x >main.c")
	if status != 0 {
		t.Fatalf("status %d: %s", status, output)
	}
	listed := map[string]bool{}
	for _, finding := range end.Review {
		for _, path := range append(finding.Others, finding.Path) {
			listed[strings.TrimPrefix(path, s.Project+"/")] = true
		}
	}
	for _, name := range names {
		if !listed[name] {
			t.Errorf("%s is not listed: %q", name, s.review(end))
		}
	}
	if listed["main.c"] {
		t.Error("source is listed")
	}
}
