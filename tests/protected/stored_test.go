//go:build linux

package protected

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/rpc/protocol"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// evilCommit sets c to a commit with a file of an editor. It touches neither the
// working tree nor the index.
const evilCommit = `export GIT_INDEX_FILE=$PWD/.git/other; git read-tree HEAD
git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),.vscode/tasks.json
c=$(echo m | git commit-tree $(git write-tree) -p HEAD); unset GIT_INDEX_FILE; `

// A plain command of git outside puts in place what a session has left in git's
// objects. When the session ends, the review names the file and the ref.
func TestWhatGitStoresIsReviewed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	confined := share(t, harness.Defaults(nil))
	for _, test := range []struct{ name, line, outside, place, ref string }{
		{"a branch", evilCommit + "git branch evil $c", "git checkout -q evil", ".vscode/tasks.json", `branch "evil"`},
		{
			"its own branch", evilCommit + "git update-ref HEAD $c", "git reset -q --hard", ".vscode/tasks.json",
			`branch "main"`,
		},
		{"a tag", evilCommit + "git tag evil $c", "git merge -q evil", ".vscode/tasks.json", `tag "evil"`},
		{
			"the stash", evilCommit + "i=$(echo i | git commit-tree HEAD^{tree} -p HEAD)\n" +
				"git stash store -m m $(echo w | git commit-tree $c^{tree} -p HEAD -p $i)",
			"git stash pop -q", ".vscode/tasks.json", "the stash",
		},
		{
			"a remote branch", evilCommit + "git update-ref refs/remotes/origin/main $c", "git merge -q origin/main",
			".vscode/tasks.json", `remote branch "origin/main"`,
		},
		{
			"the index", "git update-index --add --cacheinfo 100644,$(echo x | git hash-object -w --stdin),.vscode/tasks.json",
			"git checkout-index -q -a", ".vscode/tasks.json", "the index",
		},
		{
			"a repository of an earlier session, below node_modules",
			"git update-index --add --cacheinfo 160000,$(git -C node_modules/x rev-parse HEAD),node_modules/x",
			"git status", "ran", "the index",
		},
		{
			"a repository of an earlier session, moved to where the index names one",
			"rmdir sub && mv node_modules/x sub", "git status", "ran", "hooks and configuration",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			s.copied("a repository below node_modules", s.Project, func(dir string) {
				s.firstCommit(dir)
				s.git(dir, "checkout", "-q", "-B", "main")
				s.git(dir, "commit", "-q", "--allow-empty", "-m", "first")
				nested := filepath.Join(dir, "node_modules/x")
				harness.MakeDir(t, nested)
				s.firstCommit(nested)
				s.git(nested, "commit", "-q", "--allow-empty", "-m", "x")
				head := strings.TrimSpace(s.git(nested, "rev-parse", "HEAD"))
				s.git(dir, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
				harness.MakeDir(t, filepath.Join(dir, "sub"))
				s.git(dir, "commit", "-qm", "a submodule that is not checked out")
			})
			s.append(s.ProjectPath("node_modules/x/.git/config"),
				"[core]\n\tfsmonitor = \"touch "+s.ProjectPath("ran")+"; false\"\n")
			_, output, status, end := e.run("echo x >main.c; git add main.c; git commit -qm m")
			if status != 0 || len(end.Review) > 0 {
				t.Errorf("an ordinary commit: status %d, %+v: %s", status, end.Review, output)
			}
			_ = os.Remove(s.ProjectPath("ran"))
			_, output, status, end = e.run(test.line)
			if _, err := os.Stat(s.ProjectPath(test.place)); status != 0 || err == nil {
				t.Fatalf("status %d, it is in place already: %v: %s", status, err == nil, output)
			}
			outside := exec.Command("/bin/sh", "-c", test.outside)
			outside.Dir, outside.Env = s.Project, harness.Environ(s.World)
			said, _ := outside.CombinedOutput()
			if _, err := os.Stat(s.ProjectPath(test.place)); err != nil {
				t.Errorf("git outside did not put it in place: %v: %s", err, said)
			}
			place := "stored in git " + test.place
			switch {
			case test.ref != "the index" && test.place == "ran":
				place = "created sub/.git"
			case test.place == "ran":
				place = "stored in git node_modules/x"
			}
			named := slices.Contains(s.review(end), place)
			if !named || !strings.Contains(end.Review[0].Message, test.ref) {
				harness.Breach(t, "the review does not name it: %+v: %s", end.Review, output)
			}
		})
	}
}

// A session may run all day, and git outside puts in place at any time what it has
// stored. So that is reported while it runs, once. Ordinary work is not. Half of the
// layouts have their turn.
func TestWhatGitStoresIsReportedWhileTheSessionRuns(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	for i, machine := range harness.Machines(t) {
		confined := shareOn(t, harness.Defaults(nil), machine)
		for j, layout := range []string{
			"repository", "worktree", "worktree of a bare repository", "submodule", "package",
		} {
			if layout != "repository" && !machine.Namespaces || !harness.Turn(t, i+j, 2) {
				continue // without namespaces, nothing of a repository outside is writable
			}
			t.Run(layout+", "+machine.Name, func(t *testing.T) {
				t.Parallel()
				s, e := confined.in(t)
				layouts[layout](s)
				const ordinary = `set -e; mkdir -p .github/workflows; echo x | tee main.c pyproject.toml AGENTS.md .github/workflows/ci.yml
echo all: >Makefile; git add .; git commit -qm m
git checkout -qb topic; echo y | tee -a Makefile AGENTS.md pyproject.toml; git stash -q; git stash pop -q; git commit -qam topic
git checkout -q -; git rebase -q topic; git reset -q --hard HEAD^; echo z >>pyproject.toml; git stash -q
git tag one; git branch -m topic other; git checkout -q other; git checkout -q -; `
				session := e.Spawn(protocol.SpawnParams{Command: "/bin/bash", Args: []string{"-c", ordinary +
					`echo worked; read -r _; d=$(git rev-parse --absolute-git-dir); export GIT_INDEX_FILE=$d/more; git read-tree HEAD
git update-index --add --cacheinfo 100644,$(echo evil | git hash-object -w --stdin),"$(git rev-parse --show-prefix).vscode/tasks.json"
c=$(echo m | git commit-tree $(git write-tree) -p HEAD); unset GIT_INDEX_FILE
git branch evil/one $c; echo stored; read -r _`}})
				session.Await("worked")
				session.Type("\n")
				session.Await("stored")
				want := s.ProjectPath(".vscode/tasks.json")
				stored := func() []protocol.DeniedParams {
					return slices.DeleteFunc(e.denials.Of(session.SessionID), func(d protocol.DeniedParams) bool {
						return d.Access != "protected_stored"
					})
				}
				harness.Eventually(t, "what is stored is reported", func() bool { return len(stored()) > 0 })
				found := stored()
				if len(found) != 1 || found[0].Target != want ||
					!strings.Contains(found[0].Message, `branch "evil/one"`) {
					t.Errorf("reported: %+v", found)
				}
				session.Type("\n")
				session.Exit()
				end := session.Close(0)
				if n := len(stored()); n != 1 {
					t.Errorf("reported %d times: %+v", n, stored())
				}
				if !slices.Contains(s.review(end), "stored in git .vscode/tasks.json") {
					harness.Breach(t, "the end does not name it: %+v", end.Review)
				}
			})
		}
	}
}

// It does not matter where git holds it.
func TestWhereverGitStoresItIsReportedWhileTheSessionRuns(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	confined := share(t, harness.Defaults(nil))
	const entry = "100644,$(echo evil | git hash-object -w --stdin),.vscode/tasks.json"
	for where, line := range map[string]string{
		`tag "evil"`:                  evilCommit + "git tag evil $c",
		`remote branch "origin/main"`: evilCommit + "git update-ref refs/remotes/origin/main $c",
		"the stash":                   evilCommit + "git stash store -m m $c",
		"the index":                   "git update-index --add --cacheinfo " + entry,
		`"FETCH_HEAD"`:                evilCommit + "echo $c >.git/FETCH_HEAD",
		`branch "packed"`:             evilCommit + "git branch packed $c; git pack-refs --all",
		`branch "main"`:               evilCommit + "git update-ref HEAD $c",
	} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s, e := confined.in(t)
			s.repository(s.Project)
			beside := func(line string) *harness.Session {
				session := e.Spawn(protocol.SpawnParams{
					Command: "/bin/sh", Args: []string{"-c", line + "; echo ready; read -r _"},
				})
				session.Await("ready")
				return session
			}
			other, idle := beside("echo x >x"), beside("true")
			session := e.Spawn(protocol.SpawnParams{
				Command: "/bin/sh", Args: []string{"-c", line + "; echo stored; read -r _"},
			})
			session.Await("stored")
			for _, one := range []*harness.Session{session, other} {
				harness.Eventually(t, "what is stored is reported", func() bool {
					return slices.ContainsFunc(e.denials.Of(one.SessionID), func(d protocol.DeniedParams) bool {
						return d.Access == "protected_stored" && d.Target == s.ProjectPath(".vscode/tasks.json") &&
							strings.Contains(d.Message, where)
					})
				})
			}
			for _, one := range e.denials.Of(idle.SessionID) {
				if one.Access == "protected_stored" && idle.Sandbox.Protections["denials"].Status == protocol.Enforced {
					t.Errorf("a session that has written nothing is blamed: %+v", one)
				}
			}
		})
	}
}

// Git outside runs programs of the project that its configuration has named
// before. The review names those that have changed, or are new.
func TestProgramsThatGitsConfigurationNamesAreReviewed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	s.repository(s.Project)
	s.git(s.Project, "checkout", "-q", "-B", "main")
	for _, name := range []string{"tools/clean", "tools/diff.py", "tools/other", "edit"} {
		harness.Write(t, s.ProjectPath(name), "cat")
	}
	s.git(s.Project, "config", "filter.x.clean", "sh tools/clean %f")
	s.git(s.Project, "config", "diff.x.textconv", "python3 './tools/diff.py' --all")
	s.git(s.Project, "config", "core.editor", "sh edit")
	s.git(s.Project, "config", "alias.new", `!sh "$(git rev-parse --show-toplevel)/tools/new"`)
	harness.Write(t, s.ProjectPath(".gitattributes"), "a filter=x")
	e := s.start(harness.Defaults(nil), harness.Machine{})
	if _, output, status, end := e.run("cat tools/clean; echo x >tools/free"); status != 0 || len(end.Review) > 0 {
		t.Errorf("nothing that git runs: status %d, %+v: %s", status, end.Review, output)
	}
	_, output, _, end := e.run("echo 'touch ran; cat' >tools/clean; mv tools/other tools/diff.py; " +
		"echo x >>edit; echo x >tools/new")
	want := []string{"changed edit", "changed tools/clean", "changed tools/diff.py", "created tools/new"}
	if found := s.review(end); !slices.Equal(found, want) {
		t.Errorf("review: %q: %s", found, output)
	}
	if len(end.Review) > 1 && !strings.Contains(end.Review[1].Message, "filter.x.clean") {
		t.Errorf("%s", end.Review[1].Message)
	}
	harness.Write(t, s.ProjectPath("a"), "a")
	s.git(s.Project, "add", "a")
	if _, err := os.Stat(s.ProjectPath("ran")); err != nil {
		t.Errorf("git outside did not run it: %v", err)
	}
}

// A program outside writes through a symlink that a session has left. The review
// names it.
func TestSymlinksThatLeadOutAreReviewed(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	s := newScene(t)
	s.repository(s.Project)
	victim := s.HomePath("victim")
	harness.Write(t, victim, "mine")
	e := s.start(harness.Defaults(nil), harness.Machine{})
	_, output, _, end := e.run("ln -s " + victim + " out; ln -s main.c inside; ln -s " + victim + " .git/FETCH_HEAD; " +
		"mkdir pkg; ln -s " + s.HomePath("other") + " pkg/node_modules")
	found := s.review(end)
	if !slices.Contains(found, "created out") || !strings.Contains(end.Review[0].Message, "pkg/node_modules") ||
		strings.Contains(end.Review[0].Message, "inside") {
		t.Errorf("review: %q: %s", found, output)
	}
	outside := exec.Command("/bin/sh", "-c", "echo evil >out")
	outside.Dir = s.Project
	if out, err := outside.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "evil\n" {
		t.Errorf("the program outside did not write through it: %v: %q", err, text)
	}
}
