package effects

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// What git says on a busy machine is no question of time here.
func TestMain(m *testing.M) {
	maxTime, inspectTime = time.Minute, time.Minute
	os.Exit(m.Run())
}

// scene is a project with a repository.
type scene struct {
	t    testing.TB
	dir  string // of the project
	home string // above it; a session cannot write it
	git  string
}

func newScene(t testing.TB, options ...string) *scene {
	t.Helper()
	s := &scene{t: t, home: t.TempDir(), git: installed(t)}
	s.dir = filepath.Join(s.home, "project")
	s.sh("cd .. && git init -q -b main " + strings.Join(options, " ") + " project && cd project && " +
		"echo a >a && mkdir .vscode && echo mine >.vscode/settings.json && git add . && git commit -qm first")
	return s
}

func installed(t testing.TB) string {
	t.Helper()
	for _, path := range gitconfig.Programs[system] {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	harness.Skip(t, "git", "it is in no directory of the system")
	return ""
}

// sh runs a script in the project.
func (s *scene) sh(script string) string {
	s.t.Helper()
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	command := exec.Command("/bin/sh", "-ec", script)
	command.Dir = s.dir
	command.Env = []string{
		"PATH=" + filepath.Dir(s.git) + ":/usr/bin:/bin", "HOME=" + s.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
		"EVIL=" + evil,
	}
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// evil is a script that prints a commit on HEAD with a file for an editor. The
// working tree and the index stay as they are.
const evil = `b=$(echo evil | git hash-object -w --stdin)
GIT_INDEX_FILE=$PWD/.git/other; export GIT_INDEX_FILE
git read-tree HEAD; git update-index --add --cacheinfo 100644,$b,.vscode/tasks.json
t=$(git write-tree); unset GIT_INDEX_FILE; rm -f .git/other; echo m | git commit-tree $t -p HEAD`

// scope is that of a session in the project.
func (s *scene) scope() Scope {
	start := time.Now().Add(-10 * time.Millisecond)
	return Scope{
		Roots: []string{s.dir}, Repositories: []string{filepath.Join(s.dir, ".git")},
		Signature: func(info fs.FileInfo) string { return fmt.Sprint(info.Mode(), info.Size(), info.ModTime()) },
		New:       func(info fs.FileInfo) bool { return !info.ModTime().Before(start) },
	}
}

func acts(_, path string) bool {
	return strings.Contains("/"+path, "/.vscode/") || filepath.Base(path) == "Makefile"
}

// lines are effects as text, with paths relative to the project.
func (s *scene) lines(list []Effect) string {
	var lines []string
	for _, e := range list {
		var paths []string
		for _, path := range e.Paths {
			rel, _ := filepath.Rel(s.dir, path)
			paths = append(paths, rel)
		}
		kind := [...]string{"stored", "linked", "moved", "replaced", "unknown", "commands", "unseen"}[e.Kind]
		lines = append(lines, strings.TrimSpace(kind+" "+strings.Join(paths, ",")+" "+e.By))
	}
	return strings.Join(lines, "; ")
}

// Each way by which git outside would put a file in place that programs act
// upon is reported with the file and the ref; what is in place already, or
// acts on nothing, is not.
func TestEffects(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, before, session, want string }{
		{"nothing", "", "git status; git log; echo b >b", ""},
		{"a commit that nobody acts upon", "", "echo b >b; git add b; git commit -qm b", ""},
		{
			"a commit of what is in the working tree", "",
			"echo all: >Makefile; git add .; git commit -qm b", "",
		},
		{"a branch", "", `git branch evil $(eval "$EVIL")`, `stored .vscode/tasks.json branch "evil"; moved .git/refs/heads/evil`},
		{"the own branch", "", `git update-ref HEAD $(eval "$EVIL")`, `stored .vscode/tasks.json branch "main"`},
		{
			"a commit behind a harmless one", "",
			`c=$(eval "$EVIL"); git update-ref HEAD $(echo m | git commit-tree $c^{tree} -p $c)`,
			`stored .vscode/tasks.json branch "main"`,
		},
		{
			"a remote branch in capitals", "",
			`c=$(eval "$EVIL"); mkdir -p .git/refs/remotes/o; echo $c | tr a-f A-F >.git/refs/remotes/o/x; git rev-parse -q --verify o/x`,
			`stored .vscode/tasks.json remote branch "o/x"`,
		},
		{
			"a remote branch with more behind it", "",
			`c=$(eval "$EVIL"); mkdir -p .git/refs/remotes/o; printf "$c\\0x" >.git/refs/remotes/o/x; git rev-parse -q --verify o/x`,
			`stored .vscode/tasks.json remote branch "o/x"`,
		},
		{
			"a packed remote branch behind a tab", "git pack-refs --all",
			`c=$(eval "$EVIL"); printf "$c\\trefs/remotes/o/x\\n" >>.git/packed-refs; git rev-parse -q --verify o/x`,
			`stored .vscode/tasks.json remote branch "o/x"`,
		},
		{
			"a packed remote branch twice", "git update-ref refs/remotes/o/x HEAD; git pack-refs --all",
			`c=$(eval "$EVIL"); p=$(cat .git/packed-refs)
			(echo "$p"; echo $c refs/remotes/o/x; git rev-parse HEAD | sed "s,$, refs/remotes/o/x,") >.git/packed-refs`,
			`stored .vscode/tasks.json remote branch "o/x"`,
		},
		{"a tag", "", `git tag evil $(eval "$EVIL")`, `stored .vscode/tasks.json tag "evil"`},
		{"an annotated tag", "", `git tag -am m evil $(eval "$EVIL")`, `stored .vscode/tasks.json tag "evil"`},
		{
			"a tag of a tree", "", `c=$(eval "$EVIL"); git tag evil $c^{tree}`,
			`stored .vscode/tasks.json tag "evil"`,
		},
		{
			"a remote branch", "", `git update-ref refs/remotes/origin/main $(eval "$EVIL")`,
			`stored .vscode/tasks.json remote branch "origin/main"`,
		},
		{"the stash", "", `git stash store -m m $(eval "$EVIL")`, `stored .vscode/tasks.json the stash`},
		{
			"an entry below the last of the stash", "",
			`git stash store -m m $(eval "$EVIL"); git stash store -m m $(echo m | git commit-tree HEAD^{tree} -p HEAD)`,
			`stored .vscode/tasks.json the stash`,
		},
		{
			"untracked files of the stash", "",
			`c=$(eval "$EVIL"); u=$(echo u | git commit-tree $c^{tree}); i=$(echo i | git commit-tree HEAD^{tree} -p HEAD)
git stash store -m m $(echo w | git commit-tree HEAD^{tree} -p HEAD -p $i -p $u)`,
			`stored .vscode/tasks.json the stash`,
		},
		{
			"the index", "", `git update-index --add --cacheinfo 100644,$(echo e | git hash-object -w --stdin),.vscode/tasks.json`,
			`stored .vscode/tasks.json the index`,
		},
		{
			"a changed file in the index", "",
			`git update-index --cacheinfo 100644,$(echo e | git hash-object -w --stdin),.vscode/settings.json`,
			`stored .vscode/settings.json the index`,
		},
		{
			"a conflict in the index", "",
			`printf '100644 %s 2\tMakefile\n' $(echo e | git hash-object -w --stdin) | git update-index --index-info`,
			`stored Makefile the index`,
		},
		{"a symlink", "", `git update-index --add --cacheinfo 120000,$(printf x | git hash-object -w --stdin),Makefile; ` +
			`printf x >Makefile`, `stored Makefile the index`},
		{"ORIG_HEAD", "", `eval "$EVIL" >.git/ORIG_HEAD`, `stored .vscode/tasks.json "ORIG_HEAD"`},
		{"FETCH_HEAD", "", `printf '%s\t\tbranch x\n' $(eval "$EVIL") >.git/FETCH_HEAD`, `stored .vscode/tasks.json "FETCH_HEAD"`},
		{
			"packed", "git tag x; git pack-refs --all", `git tag evil $(eval "$EVIL"); git pack-refs --all`,
			`stored .vscode/tasks.json tag "evil"`,
		},
		{"only packed anew", "git tag x; git branch b", "git pack-refs --all; git gc -q", ""},
		{
			"a branch at a commit that was there", "echo e >Makefile; git add .; git commit -qm e; git rm -q Makefile; git commit -qm f",
			"git branch b HEAD~1", "moved .git/refs/heads/b",
		},
		{
			"a merge of what was there",
			"git checkout -qb b; echo e >Makefile; git add .; git commit -qm e; git checkout -q main; echo c >c; git add .; git commit -qm c",
			"git merge -q -m m b; git tag m; git reset -q --hard HEAD~1", "",
		},
		{
			"branches by name", "git branch a; git branch b", "git branch -m a c; git branch -f b $(echo m | git commit-tree HEAD^{tree})",
			"moved .git/refs/heads/a,.git/refs/heads/b,.git/refs/heads/c",
		},
		{
			"a tag and a remote branch at a commit that was there",
			"git commit -q --allow-empty -m b; git tag v; git update-ref refs/remotes/origin/main HEAD; " +
				"git update-ref refs/remotes/origin/next HEAD~1; git tag gone",
			"git tag -f v HEAD~1; git update-ref refs/remotes/origin/main HEAD~1; git update-ref refs/remotes/origin/next HEAD; " +
				"git tag new HEAD~1; git tag -d gone",
			"moved .git/refs/remotes/origin/main,.git/refs/tags/v",
		},
		{"a commit that is made anew", "", "git commit -q --amend -m other", "moved .git/refs/heads/main"},
		{
			"a fast-forward to what was there", "git branch b; git checkout -q b; echo b >b; git add b; git commit -qm b; git checkout -q main",
			"git merge -q --ff-only b", "",
		},
		{
			"a repository in the index", "git init -q node_modules/x; git -C node_modules/x commit -q --allow-empty -m x",
			"git update-index --add --cacheinfo 160000,$(git -C node_modules/x rev-parse HEAD),node_modules/x",
			"linked node_modules/x the index",
		},
		{
			"a repository that the configuration ignores",
			"git config diff.ignoreSubmodules all; git init -q x; git -C x commit -q --allow-empty -m x",
			"git update-index --add --cacheinfo 160000,$(git -C x rev-parse HEAD),x",
			"linked x the index",
		},
		{"itself as a repository", "", "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),self", "linked self the index"},
		{
			"a replaced object", "", `git replace HEAD $(eval "$EVIL")`,
			`stored .vscode/tasks.json "refs/replace/ID"; replaced .git/refs/replace/ID`,
		},
		{
			"a graft that hides it", "", `c=$(eval "$EVIL"); mkdir -p .git/info; echo "$(git rev-parse HEAD) $c" >.git/info/grafts; git tag evil $c`,
			`stored .vscode/tasks.json tag "evil"`,
		},
		{"a ref to nothing", "", "echo 1234567890123456789012345678901234567890 >.git/refs/tags/x", "unknown .git/refs/tags/x"},
		{
			"a broken object", "", `c=$(eval "$EVIL"); git tag x $c; p=$(echo $c | sed 's,^..,&/,'); chmod u+w .git/objects/$p; echo x >.git/objects/$p`,
			"unknown .git/refs/tags/x",
		},
		{"a broken index", "", "echo x >.git/index", "unknown .git/index"},
		{"a file", "", "git tag x $(git hash-object -w a)", "unknown .git/refs/tags/x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.sh(test.before)
			id := s.sh("git rev-parse HEAD")
			state := Take(s.scope())
			s.sh(test.session)
			got := strings.ReplaceAll(s.lines(state.Effects(acts)), id, "ID")
			if got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// SHA-256, a split index and alternates make no difference.
func TestEffects_OfOtherRepositories(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, option, before string }{
		{"SHA-256", "--object-format=sha256", ""},
		{"a split index", "", "git update-index --split-index"},
		{"a sparse index", "", "git sparse-checkout init --cone --sparse-index"},
		{"alternates", "", "git clone -q --bare . ../store; rm -r .git/objects/??; echo $PWD/../store/objects >.git/objects/info/alternates"},
		{"a shallow clone", "", "git commit -q --allow-empty -m 2; git rev-parse HEAD >.git/shallow"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, test.option)
			s.sh(test.before)
			state := Take(s.scope())
			s.sh(`git tag evil $(eval "$EVIL"); git update-index --add --cacheinfo ` +
				`100644,$(echo e | git hash-object -w --stdin),Makefile`)
			want := `stored .vscode/tasks.json tag "evil"; stored Makefile the index`
			if got := s.lines(state.Effects(acts)); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		})
	}
}

// In a linked worktree, what belongs to another one is reported.
func TestEffects_OfOtherWorktrees(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sh("git branch other; git worktree add -q ../linked other; git commit -q --allow-empty -m 2")
	main := s.dir
	s.dir = filepath.Join(s.home, "linked")
	state := Take(Scope{
		Roots: []string{s.dir}, Repositories: []string{filepath.Join(main, ".git")},
		Signature: s.scope().Signature, New: s.scope().New,
	})
	s.sh("echo b >b; git add b; git commit -qm b")
	if got := s.lines(state.Effects(acts)); got != "" {
		t.Errorf("a commit of its own: %s", got)
	}
	s.sh("git update-ref refs/heads/main HEAD; cd " + main + "/.git; mkdir rebase-merge; echo exec evil >rebase-merge/git-rebase-todo; " +
		"echo x >>logs/HEAD; git update-index --add --cacheinfo 100644,$(echo e | git hash-object -w --stdin),Makefile")
	want := "stored Makefile the index; moved ../project/.git/refs/heads/main,../project/.git/index," +
		"../project/.git/logs/HEAD; commands ../project/.git/rebase-merge/git-rebase-todo"
	if got := s.lines(state.Effects(acts)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// In a package of a monorepo the working tree above is the session's own. In a
// linked worktree that lies in another working tree, that one is not.
func TestEffects_OfThePackageOfARepository(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sh("git branch other; git worktree add -q linked other")
	top := s.dir
	state := func(dir string) *State {
		s.dir = filepath.Join(top, dir)
		s.sh("true") // makes it
		scope := s.scope()
		scope.Repositories = []string{filepath.Join(top, ".git")}
		return Take(scope)
	}
	within := state("packages/app")
	s.sh("echo b >b; git add b; git commit -qm b; git checkout -q -b topic; git checkout -q main; touch ../../a; git status")
	if got := s.lines(within.Effects(acts)); got != "moved ../../.git/refs/heads/topic" {
		t.Errorf("a commit and a branch: %s", got)
	}
	s.sh("git update-index --add --cacheinfo 100644,$(echo e | git hash-object -w --stdin),Makefile")
	if got := s.lines(within.Effects(acts)); !strings.HasPrefix(got, "stored ../../Makefile the index") {
		t.Errorf("an index that holds what programs act upon: %s", got)
	}
	s.sh("git reset -q; mkdir ../../.git/rebase-merge; echo exec evil >../../.git/rebase-merge/git-rebase-todo")
	want := "moved ../../.git/refs/heads/topic; commands ../../.git/rebase-merge/git-rebase-todo"
	if got := s.lines(within.Effects(acts)); got != want {
		t.Errorf("a list of commands: %s\nwant %s", got, want)
	}
	s.sh("rm -r ../../.git/rebase-merge")
	linked := state("linked")
	s.sh("cd ..; git commit -q --allow-empty -m 2; git checkout -q topic")
	want = "moved ../.git/HEAD,../.git/refs/heads/main,../.git/index,../.git/logs/HEAD"
	if got := s.lines(linked.Effects(acts)); got != want {
		t.Errorf("another working tree above: %s\nwant %s", got, want)
	}
}

// git runs nothing that the repository names, and fetches nothing.
func TestEffects_RunNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	mark := filepath.Join(s.home, "ran")
	state := Take(s.scope())
	s.sh(`git tag evil $(eval "$EVIL"); git tag gone $(eval "$EVIL"); git add -A`)
	s.sh("for key in core.fsmonitor core.pager core.editor diff.external core.sshCommand core.alternateRefsCommand " +
		"diff.x.textconv diff.x.command filter.x.clean filter.x.process gpg.program core.askPass " +
		"remote.origin.uploadpack alias.rev-list alias.diff-tree pager.diff-tree; do git config $key '!touch " + mark +
		"'; git config $key 'touch " + mark + " #'; done; echo '* diff=x filter=x' >.gitattributes; " +
		"git config remote.origin.url ext::'touch " + mark + "'; git config remote.origin.promisor true; " +
		"git config protocol.ext.allow always; git config protocol.allow always; git config extensions.partialClone origin; " +
		"mkdir -p hooks; echo 'touch " + mark + "' >hooks/post-index-change; chmod +x hooks/*; git config core.hooksPath " + s.dir + "/hooks; " +
		"echo 1234567890123456789012345678901234567890 >.git/refs/tags/missing; rm -f " + mark)
	got := s.lines(state.Effects(acts))
	if !strings.Contains(got, `tag "evil"`) || !strings.Contains(got, "unknown .git/refs/tags/missing") {
		t.Errorf("git was not asked: %s", got)
	}
	if _, err := os.Stat(mark); err == nil {
		harness.Breach(t, "a program of the repository ran: %s", got)
	}
}

// A table of refs that has another content under its name is noticed.
func TestEffects_OfAReftable(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".git", ".git/worktrees/w"} {
		s := newScene(t)
		s.sh("mkdir -p " + dir + "/reftable; cd " + dir + "/reftable; echo t.ref >tables.list; echo a >t.ref")
		state := Take(s.scope())
		if got := s.lines(state.Effects(acts)); got != "" {
			t.Errorf("no change: %s", got)
		}
		s.sh("echo other >" + dir + "/reftable/t.ref")
		if got := s.lines(state.Effects(acts)); got != "unknown .git/reftable" {
			t.Errorf("a changed table in %s: %s", dir, got)
		}
	}
}

// BenchmarkEffects measures a session without a change, and one with a commit.
func BenchmarkEffects(b *testing.B) {
	for _, n := range []int{0, 500} {
		for _, packed := range []bool{false, true} {
			s := newScene(b)
			s.refs(n, packed)
			var state *State
			b.Run(fmt.Sprintf("start/%d/packed=%t", n, packed), func(b *testing.B) {
				for b.Loop() {
					state = Take(s.scope())
				}
			})
			b.Run(fmt.Sprintf("end/%d/packed=%t", n, packed), func(b *testing.B) {
				for b.Loop() {
					state.Effects(acts)
				}
			})
			s.sh("echo b >b; git add b; git commit -qm b")
			b.Run(fmt.Sprintf("commit/%d/packed=%t", n, packed), func(b *testing.B) {
				for b.Loop() {
					state.Effects(acts)
				}
			})
		}
	}
}

// In a partial clone the content of most files is missing. What a session stores is
// found all the same, and nothing is fetched.
func TestEffects_OfAPartialClone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.sh("git config uploadpack.allowFilter true; git clone -q --no-checkout --filter=blob:none file://$PWD ../partial\n" +
		"mv ../project ../origin; mv ../partial ../project")
	if missing := s.sh("git rev-list --objects --all --missing=print | grep -c '^?'"); missing == "0" {
		t.Fatal("nothing is missing")
	}
	state := Take(s.scope())
	s.sh(`c=$(eval "$(echo "$EVIL" | sed "s/write-tree/write-tree --missing-ok/")"); git tag evil $c`)
	if got := s.lines(state.Effects(acts)); got != `stored .vscode/tasks.json tag "evil"` {
		t.Error(got)
	}
	if missing := s.sh("git rev-list --objects --all --missing=print | grep -c '^?'"); missing == "0" {
		t.Error("it was fetched")
	}
}
