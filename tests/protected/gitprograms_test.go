//go:build linux

package protected

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// git-lfs sets its filters, and removes them again. Its hooks are refused.
func TestGitLFSSetsItsFilters(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	harness.RequirePrograms(t, "git-lfs")
	s := newScene(t)
	s.repository(s.Project)
	e := s.start(harness.Defaults(nil), harness.Machine{})
	_, output, status, _ := e.run("git lfs install --local --skip-repo")
	if list := s.git(s.Project, "config", "--local", "--list"); status != 0 ||
		!strings.Contains(list, "filter.lfs.process=git-lfs filter-process\n") ||
		!strings.Contains(list, "filter.lfs.required=true\n") {
		t.Errorf("status %d: %s\n%s", status, output, list)
	}
	_, output, status, _ = e.run("git lfs install --local; git lfs track '*.bin'; " +
		"git config filter.lfs.clean 'git-lfs clean -- %f; x'")
	if _, err := os.Lstat(s.ProjectPath(".git/hooks/pre-push")); err == nil || status == 0 ||
		!strings.Contains(output, "read-only file system") ||
		strings.Contains(s.git(s.Project, "config", "--list"), "; x") {
		t.Errorf("status %d: %s", status, output)
	}
	if _, output, status, _ = e.run("git lfs uninstall --local"); status != 0 ||
		strings.Contains(s.git(s.Project, "config", "--local", "--list"), "filter.lfs") {
		t.Errorf("status %d: %s", status, output)
	}
}

// pre-commit writes a hook, so it is refused. The report says how to go on.
func TestPreCommitIsInstalledOutside(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	harness.RequirePrograms(t, "pre-commit")
	s := newScene(t)
	s.repository(s.Project)
	harness.Write(t, s.ProjectPath(".pre-commit-config.yaml"), "repos: []\n")
	e := s.start(harness.Defaults(harness.Sandbox{"toolchains": []string{"python"}}), harness.Machine{})
	_, output, status, _ := e.run("pre-commit install")
	if _, err := os.Lstat(s.ProjectPath(".git/hooks/pre-commit")); err == nil || status == 0 ||
		!strings.Contains(output, "Read-only file system") {
		t.Errorf("status %d: %s", status, output)
	}
	harness.Eventually(t, "it is reported", func() bool {
		for _, d := range e.denials.All() {
			if d.Target == s.ProjectPath(".git/hooks/pre-commit") && strings.Contains(d.Message, "refused") &&
				strings.HasSuffix(d.Hint, "outside the sandbox: pre-commit install") {
				return true
			}
		}
		return false
	})
}

// halfWay is what the report of a file that git could not replace says.
const halfWay = `if you trust it, outside: "git stash -u" and the same again; if git went on: "git restore" this file`

// git that may not replace a protected file has changed other files by then. What
// the report says to do loses nothing, and ends where git would have ended.
func TestGitThatStopsHalfWay(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	const protected, mine = ".vscode/settings.json", "changed by the user\n"
	confined := share(t, harness.Defaults(nil))
	for _, c := range []struct {
		command string
		stops   bool // false: it keeps the old file, and goes on
		fresh   bool // the file is new
	}{
		{"git merge next", true, false},
		{"git rebase --autostash next", true, false},
		{"git pull origin next", true, false},
		{"git reset --keep next", true, false},
		{"git merge next", true, true},
		{"git switch next", false, false},
		{"git checkout next", false, false},
	} {
		t.Run(c.command, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			s.copied(fmt.Sprint("two branches, a new file ", c.fresh), s.Project, func(dir string) {
				write := func(name, text string) { harness.Write(t, filepath.Join(dir, name), text) }
				s.firstCommit(dir)
				if !c.fresh {
					write(protected, "{}\n")
				}
				write("AUTHORS", "one\n")
				write("mine", "one\n")
				s.git(dir, "add", ".")
				s.git(dir, "commit", "-q", "-m", "second")
				s.git(dir, "remote", "add", "origin", ".")
				s.git(dir, "switch", "-q", "-c", "next")
				write(protected, "{\"x\": 1}\n")
				write("AUTHORS", "two\n")
				write("new", "two\n")
				s.git(dir, "add", ".")
				s.git(dir, "commit", "-q", "-m", "third")
				s.git(dir, "switch", "-q", "main")
			})
			harness.Write(t, s.ProjectPath("mine"), mine)

			_, output, status, _ := e.run(c.command)
			// It cannot make the directory of a new file, and changes nothing.
			changed := harness.Read(t, s.ProjectPath("AUTHORS")) == "two\n"
			if (status != 0) != c.stops || changed == c.fresh {
				t.Fatalf("status %d: %s", status, output)
			}
			harness.Eventually(t, "it is reported", func() bool {
				return slices.ContainsFunc(e.denials.All(), func(d protocol.DeniedParams) bool {
					return strings.HasPrefix(d.Target, s.ProjectPath(".vscode")) && d.Hint == halfWay
				})
			})
			if c.stops {
				s.git(s.Project, "stash", "-q", "-u")
				s.git(s.Project, strings.Fields(c.command)[1:]...)
				// What git has made is there by now, so the stash stays.
				command := exec.Command("git", "stash", "pop")
				command.Dir, command.Env = s.Project, harness.Environ(s.World)
				_ = command.Run()
			} else {
				s.git(s.Project, "restore", protected)
			}
			left := s.git(s.Project, "status", "--short")
			if left != " M mine\n" || harness.Read(t, s.ProjectPath("mine")) != mine ||
				s.git(s.Project, "rev-parse", "HEAD") != s.git(s.Project, "rev-parse", "next") {
				t.Errorf("after what the report says: %s", left)
			}
		})
	}
}

// husky sets core.hooksPath, which is refused, and the installation goes on. Where
// it is set up already, it writes its hooks again: the report says how to go on.
func TestHuskyPrepares(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	harness.RequirePrograms(t, "npm", "husky")
	s := newScene(t)
	s.repository(s.Project)
	harness.Write(t, s.ProjectPath("package.json"),
		`{"name": "x", "version": "1.0.0", "scripts": {"prepare": "husky"}}`)
	inside := func(line string) (string, bool) {
		command := exec.Command(harness.Binary(t), "exec", "--", "sh", "-c", line)
		command.Dir, command.Env = s.Project, append(harness.Environ(s.World), "XDG_RUNTIME_DIR="+harness.ShortDir(t))
		out, err := command.CombinedOutput()
		return harness.Unfold(string(out)), err == nil
	}
	const install = "npm install --offline --no-audit --no-fund --no-update-notifier"
	harness.Write(t, s.UserSettings(), harness.Defaults(harness.Sandbox{"toolchains": []string{"node"}}))
	out, ok := inside(install)
	if !ok || !strings.Contains(out, "run outside the sandbox: git config core.hooksPath .husky/_") {
		t.Errorf("a new project: %t: %s", ok, out)
	}
	command := exec.Command("husky")
	command.Dir, command.Env = s.Project, harness.Environ(s.World)
	if out, err := command.CombinedOutput(); err != nil ||
		s.git(s.Project, "config", "core.hooksPath") != ".husky/_\n" {
		t.Fatalf("outside: %v: %s", err, out)
	}
	hook := harness.Read(t, s.ProjectPath(".husky/_/h"))
	out, ok = inside(install)
	if ok || !strings.Contains(out, "HUSKY=0 npm install") {
		t.Errorf("it is set up: %t: %s", ok, out)
	}
	if out, ok = inside("HUSKY=0 " + install); !ok || strings.Contains(out, "refused") {
		t.Errorf("the way on: %t: %s", ok, out)
	}
	// The hooks stay as they are.
	out, ok = inside("echo ./x >.husky/_/h")
	if ok || harness.Read(t, s.ProjectPath(".husky/_/h")) != hook {
		harness.Breach(t, "a session has changed a hook: %s", out)
	}
}

// With "ignore" and while learning, the same changes are accepted and refused.
func TestGitChangesItsConfigurationUnreported(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for name, test := range map[string]struct {
		settings string
		args     []string
		says     bool
	}{
		"ignore": {harness.Defaults(harness.Sandbox{"on_denied": "ignore"}), []string{"exec", "--"}, false},
		"learn":  {harness.Defaults(nil), []string{"learn", "--"}, true},
	} {
		s := newScene(t)
		s.repository(s.Project)
		harness.Write(t, s.UserSettings(), test.settings)
		const line = "git remote add other https://example.com/x && git config core.pager x"
		command := exec.Command(harness.Binary(t), append(test.args, "sh", "-c", line)...)
		command.Dir, command.Env = s.Project, harness.Environ(s.World)
		out, _ := command.CombinedOutput()
		list := s.git(s.Project, "config", "--local", "--list")
		if !strings.Contains(list, "remote.other.url=") || strings.Contains(list, "core.pager") ||
			strings.Contains(harness.Unfold(string(out)),
				`git's "core.pager": git would run "x" as the pager`) != test.says {
			t.Errorf("%s: %s\n%s", name, out, list)
		}
	}
}
