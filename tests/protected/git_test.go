//go:build linux

package protected

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// work is everyday work with git.
const work = `set -e
echo more >>file; git add file; git commit -qm second
git status --short --branch >/dev/null; git log --oneline | grep -q second; git diff HEAD^ | grep -q more
git branch side; git checkout -q side; echo side >side; git add side; git commit -qm side
git checkout -q -; echo main >main; git add main; git commit -qm third; git rebase -q side
git log --oneline | grep -q side
echo dirty >>file; git stash -q; git stash list | grep -q stash; git stash pop -q; git checkout -q file
git tag v1; git tag -a v2 -m v2; git reflog >/dev/null
git worktree add -q tree -b tree; (cd tree; echo t >t; git add t; git commit -qm t); git worktree remove tree
git push -q PUSHED HEAD:refs/heads/work; git ls-remote PUSHED | grep -q heads/work
git gc -q; git fsck 2>/dev/null >/dev/null
git reset -q --hard HEAD^; git merge -q v1 2>/dev/null
git init -q fresh; (cd fresh; echo x >x; git add x; git commit -qm fresh; git config a.b c; git remote add o /nowhere)
rm -rf fresh
echo fine`

// A day's work, in a third of the layouts in a turn.
func TestGitWorksInEveryLayout(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	for i, name := range slices.Sorted(maps.Keys(layouts)) {
		if !harness.Turn(t, i, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := work
			if name == "none" {
				line = `set -e
git init -q .; echo x >file; git add .; git commit -qm first; git config a.b c; ` + strings.TrimPrefix(work, "set -e\n")
			}
			for _, sandboxed := range []bool{false, true} {
				s := newScene(t)
				layouts[name](s)
				pushed := filepath.Join(s.Outside, "pushed.git")
				s.bare(pushed)
				settings := harness.Off()
				if sandboxed {
					settings = harness.Defaults(harness.Sandbox{"additional_read_write_paths": []string{pushed}})
				}
				line := strings.ReplaceAll(line, "PUSHED", harness.Quote(pushed))
				reply, output, status, _ := s.start(settings, harness.Machine{}).run(line)
				if status != 0 || !strings.HasSuffix(strings.TrimSpace(output), "fine") {
					t.Errorf("%s: status %d:\n%s", settings, status, output)
				}
				if sandboxed != reply.Sandbox.Applied {
					t.Errorf("%+v", reply.Sandbox)
				}
			}
		})
	}
}

// In a linked worktree without namespaces, nothing of the repository outside is
// writable; otherwise all of it would be.
func TestGitOnlyReadsARepositoryOutsideWithoutNamespaces(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	without := shareOn(t, harness.Defaults(nil), harness.Machine{Wrap: harness.WithoutNamespaces(t)})
	for _, name := range []string{"worktree", "worktree of a bare repository", "submodule", "package"} {
		s, e := without.in(t)
		layouts[name](s)
		_, output, status, _ := e.run(
			`git log --oneline && git status --short && echo evil >"$(git rev-parse --git-common-dir)/hooks/pre-commit"`)
		if status == 0 || !strings.Contains(output, "first") || !strings.Contains(output, "Permission denied") {
			t.Errorf("%s: status %d: %s", name, status, output)
		}
	}
}

// A submodule's working tree lies in the project, its repository with hooks in
// the project's .git. A registered one is cloned inside; an existing one is
// fetched and checked out. For the latter "git submodule update" rewrites its
// configuration even if nothing changes (ensure_core_worktree in git's
// submodule--helper.c). That is accepted.
func TestGitUpdatesSubmodules(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	prepare := func() *scene {
		s := newScene(t)
		origin := filepath.Join(s.Outside, "origin")
		s.repository(origin)
		for _, name := range []string{"there", "missing"} {
			s.git(s.Outside, "init", "-q", "super")
			s.git(filepath.Join(s.Outside, "super"), "submodule", "--quiet", "add", origin, name)
		}
		s.git(filepath.Join(s.Outside, "super"), "commit", "-q", "-m", "modules")
		s.remake()
		s.git(s.Home, "clone", "-q", filepath.Join(s.Outside, "super"), s.Project)
		s.git(s.Project, "submodule", "--quiet", "init")
		s.git(s.Project, "submodule", "--quiet", "update", "there")
		harness.Write(t, filepath.Join(origin, "file"), "newer\n")
		s.git(origin, "commit", "-q", "-a", "-m", "newer")
		return s
	}
	const line = `set -e
git submodule --quiet update missing; test -f missing/file
git submodule --quiet update --remote missing; cat missing/file
(cd there && git fetch -q && git checkout -q origin/HEAD && cat file)
git add there missing; git commit -qm updated; git submodule status; echo fine`
	for _, settings := range []string{harness.Off(), harness.Defaults(nil)} {
		s := prepare()
		grants := strings.Replace(settings, `"enabled": true`,
			`"enabled": true, "additional_read_only_paths": ["`+s.Outside+`"]`, 1)
		_, output, status, _ := s.start(grants, harness.Machine{}).run(line)
		if status != 0 || strings.Count(output, "newer") != 2 || !strings.HasSuffix(strings.TrimSpace(output), "fine") {
			t.Errorf("%s: status %d:\n%s", settings, status, output)
		}
		if settings == harness.Off() {
			continue
		}
		e := s.start(grants, harness.Machine{})
		_, output, status, _ = e.run(`echo evil >.git/modules/there/hooks/post-checkout; echo evil ` +
			`>>.git/modules/there/config; echo evil >there/.git; git -C there config a.b c`)
		if status == 0 || strings.Count(output, "Read-only file system") != 3 ||
			!strings.Contains(output, "Operation not permitted") {
			harness.Breach(t, "the submodule's hooks can be written: status %d: %s", status, output)
		}
		harness.Eventually(t, "the refusal is reported", func() bool {
			return slices.Contains(s.reports(e), "protected_write .git/modules/there/config")
		})
	}
}

// The setting core.hooksPath can name a directory of the project.
func TestHooksElsewhereAreProtectedToo(t *testing.T) {
	t.Parallel()
	harness.Require(t, "protected_paths")
	s := newScene(t)
	s.repository(s.Project)
	harness.Write(t, s.ProjectPath("tools/hooks/pre-commit"), "#!/bin/sh\n")
	harness.Write(t, s.ProjectPath(".gitmore"), "")
	s.git(s.Project, "config", "core.hooksPath", "tools/hooks")
	s.git(s.Project, "config", "include.path", "../.gitmore")
	_, output, _, _ := s.start(harness.Defaults(nil), harness.Machine{}).run(
		`echo evil >tools/hooks/pre-commit; mv tools t; echo evil >.gitmore; mv .gitmore m; echo fine >tools/other; cat ` +
			`tools/other`)
	if strings.Count(output, "Read-only file system") != 2 || strings.Count(output, "Device or resource busy") != 2 ||
		!strings.Contains(output, "fine") {
		t.Error(output)
	}
}

// No placeholder and no mount point is left in the project, whatever the layout
// and the machine.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	machines := harness.Machines(t)
	for i, machine := range machines {
		confined := shareOn(t, harness.Defaults(nil), machine)
		for j, name := range slices.Sorted(maps.Keys(layouts)) {
			if !harness.Turn(t, i+j, len(machines)) {
				continue
			}
			t.Run(machine.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, e := confined.in(t)
				layouts[name](s)
				look := func() string {
					state := list(t, s.Project) + list(t, s.Outside)
					if name != "none" {
						state += s.git(s.Project, "status", "--ignored", "--short", "--branch")
					}
					return state
				}
				before := look()
				reply, output, status, _ := e.run("ls -a >/dev/null; git status >/dev/null 2>&1; true")
				if status != 0 {
					t.Fatalf("status %d: %s", status, output)
				}
				// A killed session has no time to clean up.
				session := e.Shell()
				session.Await(`[#$] `)
				session.Close(0)
				if after := look(); after != before {
					t.Errorf("before:\n%s\nafter:\n%s", before, after)
				}
				for _, d := range append(e.denials.Of(reply.SessionID), e.denials.Of(session.SessionID)...) {
					if strings.HasPrefix(d.Access, "protected_") {
						t.Errorf("an alarm: %+v", d)
					}
				}
			})
		}
	}
}
