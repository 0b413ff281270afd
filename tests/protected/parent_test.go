//go:build linux

package protected

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A package has the repository above it, and may change nothing in it but what
// git writes. Each act works without the sandbox.
func TestAPackageCannotChangeTheRepositoryAbove(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	acts := map[string]string{
		"a hook":             `mkdir -p ../../.git/hooks; echo x >../../.git/hooks/pre-commit`,
		"the configuration":  `echo '[alias] x = !touch y' >>../../.git/config`,
		"a program by git":   `git config core.fsmonitor ./evil`,
		"hooks by git":       `git config core.hooksPath packages/app`,
		"hooks moved away":   `mv ../../.git/hooks ../../.git/old`,
		"another repository": `echo ../../packages/app >../../.git/commondir`,
		"attributes":         `mkdir -p ../../.git/info; echo '* filter=x' >../../.git/info/attributes`,
		"a file of another":  `echo x >>../other/source`,
		"a new file":         `echo x >../other/new`,
		"the root":           `echo x >../../package.json`,
		"the way to it":      `mv ../../packages ../../old`,
	}
	controls, printed := withoutSandbox(t, maps.Keys(acts), func(s *scene, name string) string {
		layouts["package"](s)
		return "{ " + acts[name] + "\n} && : >~/worked"
	})
	confined := share(t, harness.Defaults(nil))
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Lstat(controls[name].HomePath("worked")); err != nil {
				t.Errorf("without the sandbox %s fails:\n%s", act, printed)
			}
			s, e := confined.in(t)
			layouts["package"](s)
			if _, output, status, _ := e.run(act); status == 0 {
				harness.Breach(t, "%s: it works:\n%s", act, output)
			}
		})
	}
}

// A package pushes, changes the configuration as far as that is harmless, and
// finds what its tools look for in the directories above.
func TestAPackageIsWorkedOn(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	harness.RequirePrograms(t, "node", "go")
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, settings := range []string{harness.Off(), ""} {
		s := newScene(t)
		layouts["package"](s)
		top, origin := filepath.Join(s.Outside, "mono"), filepath.Join(s.Outside, "origin.git")
		s.git(s.Outside, "clone", "-q", "--bare", top, origin)
		s.git(top, "remote", "add", "origin", origin)
		for file, text := range map[string]string{
			"go.work":                   "go 1.21\nuse (\n\t./packages/app\n\t./packages/other\n)\n",
			"packages/app/go.mod":       "module example.org/app\ngo 1.21\n",
			"packages/app/app.go":       "package app\nimport _ \"example.org/other\"\n",
			"packages/other/go.mod":     "module example.org/other\ngo 1.21\n",
			"packages/other/other.go":   "package other\n",
			"node_modules/lib/index.js": "module.exports = 'hoisted'\n",
		} {
			harness.Write(t, filepath.Join(top, file), text)
		}
		if settings == "" {
			settings = harness.Defaults(map[string]any{"additional_read_write_paths": []string{origin}})
		}
		e := s.start(settings, harness.Machine{})
		for tool, line := range map[string]string{
			"git": `git checkout -q -b topic && echo x >>file && git commit -qam x && git push -q -u origin topic &&
				git rev-parse --abbrev-ref @{u} | grep origin/topic`,
			"go": `GOCACHE=$PWD/.cache GOFLAGS=-mod=readonly GOTOOLCHAIN=local GOPROXY=off \
				` + program + ` list -deps . | grep -x example.org/other`,
			"node": `node -e 'console.log(require("lib"))' | grep hoisted`,
		} {
			if _, output, status, _ := e.run(line); status != 0 {
				t.Errorf("%s: status %d:\n%s", tool, status, output)
			}
		}
	}
}

// What "parent_repository" lets a package read: files of other packages, and
// those that tools look for in the directories above. Secrets stay hidden.
func TestParentRepositoryOpensWhatItSays(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths", "hidden_paths")
	for _, test := range []struct {
		value            string
		git, files, envs bool
	}{
		{value: "read", git: true, files: true},
		{value: "git", git: true},
		{value: "off"},
		{value: "", git: true, files: true, envs: true}, // without the sandbox
	} {
		t.Run(test.value, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			layouts["package"](s)
			top := filepath.Join(s.Outside, "mono")
			for file, text := range map[string]string{
				"go.work": "go 1.21\n", "node_modules/lib/index.js": "module.exports = 1\n",
				".gitignore": ".env\n.env.*\n",
				".env":       "SECRET=1\n", "packages/other/.env.local": "SECRET=1\n",
			} {
				harness.Write(t, filepath.Join(top, file), text)
			}
			// What git holds as it is there is not hidden, so git sees no change.
			for _, file := range []string{".env.shared", ".env.changed"} {
				harness.Write(t, filepath.Join(top, file), "SHARED=1\n")
				s.git(top, "add", "-f", file)
			}
			s.git(top, "commit", "-qm", "variables")
			harness.Write(t, filepath.Join(top, ".env.changed"), "SECRET=1\n")
			harness.Write(t, s.ProjectPath(".env"), "OWN=1\n")
			settings := harness.Off()
			if test.value != "" {
				settings = harness.Defaults(map[string]any{"parent_repository": test.value})
			}
			lines := map[string]bool{
				"git status --short && echo x >>file && git add file && git commit -qm more && git log --oneline": test.git,
				"cat ../../go.work ../../node_modules/lib/index.js ../other/source":                               test.files,
				"ls ../other":             test.files,
				"cat ../../.env":          test.envs,
				"cat ../other/.env.local": test.envs,
				"cat ../../.env.shared && git diff --quiet HEAD -- ../../.env.shared": test.files,
				"cat ../../.env.changed":       test.envs,
				"cat .env":                     true,
				"ls -l .. && cat ../../.git/x": false,
			}
			script, sorted := "", slices.Sorted(maps.Keys(lines))
			for i, line := range sorted {
				script += fmt.Sprintf("(%s) && echo works: %d\n", line, i)
			}
			_, output, _, _ := s.start(settings, harness.Machine{}).run(script + "echo over")
			if !strings.HasSuffix(output, "over\n") {
				t.Fatal(output)
			}
			for i, line := range sorted {
				if works := strings.Contains(output, fmt.Sprintf("works: %d\n", i)); works != lines[line] {
					t.Errorf("%s: works: %t, want %t:\n%s", line, works, lines[line], output)
				}
			}
		})
	}
}

// What is explained about the repository above is what a session meets.
func TestParentRepositoryIsExplainedAsItIs(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths", "hidden_paths")
	for _, value := range []string{"read", "git", "off"} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			layouts["package"](s)
			top := filepath.Join(s.Outside, "mono")
			for _, file := range []string{".env", ".gitignore", ".mailmap", ".git/info/attributes", ".git/hooks/x"} {
				harness.Write(t, filepath.Join(top, file), "")
			}
			e := s.start(harness.Defaults(map[string]any{"parent_repository": value}), harness.Machine{})
			answers, script := map[string]protocol.PolicyExplainResult{}, ""
			for _, path := range []string{
				"file", "packages/other/source", "packages/app/file", ".env", ".gitignore", ".mailmap", ".git/HEAD",
				".git/index", ".git/config", ".git/hooks/x", ".git/info/attributes", ".git/info/exclude",
			} {
				target := filepath.Join(top, path)
				for access, act := range map[protocol.Access]string{"read": ": <", "write": ": >>"} {
					what := string(access) + " " + path
					answers[what] = harness.Call(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
						ProjectDir: s.Project, Kind: "tool", Access: access, Target: target,
					})
					script += fmt.Sprintf("(%s%s) && echo 'works: %s'\n", act, harness.Quote(target), what)
				}
			}
			_, output, _, _ := e.run(script + "echo over")
			if !strings.HasSuffix(output, "over\n") {
				t.Fatal(output)
			}
			for what, said := range answers {
				if works := strings.Contains(output, "works: "+what+"\n"); said.Allowed != works {
					harness.Breach(t, "%s: %t (%s; %s), but it works: %t: %s", what, said.Allowed, said.Reason,
						said.Hint, works, output)
				}
			}
		})
	}
}

// A repository above a project opens nothing if the project is none of its
// packages, or if a session could have made it.
func TestARepositoryAboveMayNotCount(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	const line = "cat ../other/source"
	confined := share(t, harness.Defaults(nil))
	s, e := confined.in(t)
	layouts["package"](s)
	if _, output, status, _ := e.run(line); status != 0 {
		t.Fatalf("the control fails: %s", output)
	}
	for name, prepare := range map[string]func(s *scene, top string){
		"ignored by .gitignore": func(s *scene, top string) {
			harness.Write(s.T, filepath.Join(top, ".gitignore"), "packages/\n")
		},
		"ignored by a name in between": func(s *scene, top string) {
			harness.Write(s.T, filepath.Join(top, "packages/.gitignore"), "/app\n")
		},
		"ignored by info/exclude": func(s *scene, top string) {
			harness.Write(s.T, filepath.Join(top, ".git/info/exclude"), "app\n")
		},
		"ignored by core.excludesFile": func(s *scene, top string) {
			harness.Write(s.T, filepath.Join(s.Home, "ignored"), "app\n")
			s.append(filepath.Join(s.Home, ".gitconfig"), "[core]\n\texcludesFile = ~/ignored\n")
		},
		"the default of core.excludesFile": func(s *scene, top string) {
			harness.Write(s.T, filepath.Join(s.Home, ".config/git/ignore"), "app\n")
		},
		"a working tree elsewhere": func(s *scene, top string) {
			s.append(filepath.Join(top, ".git/config"), "[core]\n\tworktree = "+s.Home+"\n")
		},
		"bare": func(s *scene, top string) { s.git(top, "config", "core.bare", "true") },
		"a symlink": func(s *scene, top string) {
			must(s, os.Rename(filepath.Join(top, ".git"), filepath.Join(s.Outside, "git")))
			must(s, os.Symlink(filepath.Join(s.Outside, "git"), filepath.Join(top, ".git")))
		},
		"a file that leads to a repository that does not name it": func(s *scene, top string) {
			must(s, os.Rename(filepath.Join(top, ".git"), filepath.Join(s.Outside, "git")))
			harness.Write(s.T, filepath.Join(top, ".git"), "gitdir: "+filepath.Join(s.Outside, "git")+"\n")
		},
		"no repository": func(s *scene, top string) {
			must(s, os.RemoveAll(filepath.Join(top, ".git")))
			harness.MakeDir(s.T, filepath.Join(top, ".git/objects"))
		},
		"a nested project": func(s *scene, top string) { s.git(s.Project, "init", "-q") },
		"secrets in it": func(s *scene, top string) {
			must(s, os.Symlink(filepath.Join(top, "ssh"), filepath.Join(s.Home, ".ssh")))
			harness.Write(s.T, filepath.Join(top, "ssh/id_ed25519"), "key\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			if inHome := []string{
				"ignored by core.excludesFile", "the default of core.excludesFile", "secrets in it",
			}; slices.Contains(inHome, name) {
				s = newScene(t)
			}
			layouts["package"](s)
			prepare(s, filepath.Join(s.Outside, "mono"))
			if s.Home != confined.at.Home {
				e = s.start(harness.Defaults(nil), harness.Machine{})
			}
			if _, output, status, _ := e.run(line); status == 0 {
				harness.Breach(t, "it is open: %s", output)
			}
		})
	}
}

// A home directory that is a repository opens nothing of it.
func TestAHomeThatIsARepositoryStaysClosed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	s.repository(s.Home)
	harness.Write(t, s.ProjectPath("file"), "content\n")
	e := s.start(harness.Defaults(nil), harness.Machine{})
	if _, output, status, _ := e.run("cat ../file ../.git/HEAD"); status == 0 {
		harness.Breach(t, "it is open: %s", output)
	}
	if _, output, status, _ := e.run("cat file"); status != 0 {
		t.Errorf("the control fails: %s", output)
	}
}

func must(s *scene, err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}

// A program that asks for variables of another package is told what they are, and
// what would show them. That shows them.
func TestVariablesOfAnotherPackageAreToldWithTheirStep(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths", "hidden_paths")
	s := newScene(t)
	layouts["package"](s)
	path := filepath.Join(s.Outside, "mono/packages/other/.env")
	harness.Write(t, path, "SECRET=1\n")
	e := s.start(harness.Defaults(nil), harness.Machine{})
	if _, output, status, _ := e.run("cat ../other/.env"); status == 0 {
		harness.Breach(t, "it is read: %s", output)
	}
	said := harness.Call(e.Editor, protocol.PolicyExplain, protocol.PolicyExplainParams{
		ProjectDir: s.Project, Kind: "tool", Access: "read", Target: path,
	})
	if said.Allowed || !said.Careful || said.Hint != "careful: it may hold a secret" ||
		said.Setting != "additional_read_only_paths" || said.Value != path {
		t.Errorf("%+v", said)
	}
	e = s.start(harness.Defaults(map[string]any{"additional_read_only_paths": []string{path}}), harness.Machine{})
	if _, output, status, _ := e.run("cat ../other/.env"); status != 0 || output != "SECRET=1\n" {
		t.Errorf("what is granted: status %d: %q", status, output)
	}
}
