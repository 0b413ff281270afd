//go:build linux

package protected

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// strange are ways to leave something in a repository's directory that is neither
// a regular file nor a directory, and where it is then, from that directory. $G
// is the directory, and $V a file elsewhere. Without the sandbox all of them do.
var strange = map[string][2]string{
	"symlink":             {`rm -f $G/ORIG_HEAD; ln -s $V $G/ORIG_HEAD`, "ORIG_HEAD"},
	"in logs":             {`rm $G/logs/HEAD; ln -s $V $G/logs/HEAD`, "logs/HEAD"},
	"in refs":             {`ln -s $V $G/refs/tags/v1`, "refs/tags/v1"},
	"a directory":         {`rm -rf $G/refs/tags; ln -s $O $G/refs/tags`, "refs/tags"},
	"to inside":           {`rm $G/COMMIT_EDITMSG; ln -s config $G/COMMIT_EDITMSG`, "COMMIT_EDITMSG"},
	"dangling":            {`ln -s /nonexistent $G/MERGE_MSG`, "MERGE_MSG"},
	"relative":            {`cd $G/logs; ln -s $V new`, "logs/new"},
	"by proc":             {`cd $G; ln -s $V /proc/self/cwd/FETCH_HEAD`, "FETCH_HEAD"},
	"by a linked way":     {`ln -s $G way; ln -s $V way/FETCH_HEAD`, "FETCH_HEAD"},
	"dot dot":             {`ln -s $V $G/logs/../FETCH_HEAD`, "FETCH_HEAD"},
	"as git's probe":      {`ln -s $V $G/tAbc123`, "tAbc123"},
	"as another's probe":  {`ln -s testing $G/xAbc123`, "xAbc123"},
	"a probe elsewhere":   {`ln -s testing $G/refs/heads/tAbc12`, "refs/heads/tAbc12"},
	"the probe, renamed":  {`ln -s testing $G/tAbc123; mv -f $G/tAbc123 $G/COMMIT_EDITMSG`, "COMMIT_EDITMSG"},
	"FIFO":                {`rm $G/logs/HEAD; mkfifo $G/logs/HEAD`, "logs/HEAD"},
	"socket":              {`python3 -c 'import os, socket; os.chdir(os.environ["G"]); socket.socket(1).bind("ipc")'`, "ipc"},
	"rename":              {`ln -s $V l; python3 -c 'import os; os.rename("l", os.environ["G"] + "/FETCH_HEAD")'`, "FETCH_HEAD"},
	"rename by mv":        {`ln -s $V l; mv l $G/FETCH_HEAD`, "FETCH_HEAD"},
	"rename of a FIFO":    {`mkfifo l; mv l $G/FETCH_HEAD`, "FETCH_HEAD"},
	"hard link":           {`ln -s $V l; ln -P l $G/FETCH_HEAD || mv l $G/FETCH_HEAD`, "FETCH_HEAD"},
	"a directory with it": {`mkdir -p d/a; ln -s $V d/a/HEAD; rm -rf $G/refs/tags; mv d $G/refs/tags`, "refs/tags/a/HEAD"},
	"away and back": {
		`mv $G/logs away; rm away/HEAD; ln -s $V away/HEAD; rm -rf $G/logs; mv away $G/logs`, "logs/HEAD",
	},
	"an open directory": {`mkdir d; python3 -c 'import os
fd = os.open("d", os.O_RDONLY)
os.mkdir(os.environ["G"] + "/e"); os.close(fd)
fd = os.open(os.environ["G"] + "/e", os.O_RDONLY)
os.symlink(os.environ["V"], "x", dir_fd=fd)'`, "e/x"},
	"exchange": {`ln -s $V $G/../l 2>/dev/null || ln -s $V l; python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); g = os.environ["G"].encode()
l = b"l" if os.path.islink("l") else g + b"/../l"
sys.exit(os.strerror(ctypes.get_errno()) if libc.renameat2(-100, g + b"/HEAD", -100, l, 2) else 0)'`, "HEAD"},
	"whiteout": {`python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); g = os.environ["G"].encode()
sys.exit(os.strerror(ctypes.get_errno()) if libc.renameat2(-100, g + b"/COMMIT_EDITMSG", -100, g + b"/x", 4) else 0)'`, "COMMIT_EDITMSG"},
	"a descriptor of a link": {`ln -s $V l; python3 -c 'import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True); g = os.environ["G"].encode()
os.rename("l", g + b"/../l")
fd = os.open(g + b"/../l", os.O_PATH | os.O_NOFOLLOW)
to = g + b"/FETCH_HEAD"
sys.exit(os.strerror(ctypes.get_errno()) if libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, to, 0x400) else 0)'`, "FETCH_HEAD"},
}

// git outside follows what a session leaves in the place of its files, so nothing
// but files and directories can be made there.
func TestOnlyFilesAreMadeInARepository(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	harness.RequirePrograms(t, "python3")
	begin := func(s *scene, name string) placed {
		s.repository(s.Project)
		return s.place(strange[name])
	}
	attempts := map[string]placed{}
	_, printed := withoutSandbox(t, maps.Keys(strange), func(s *scene, name string) string {
		attempts[name] = begin(s, name)
		return attempts[name].line
	})
	confined := share(t, harness.Defaults(nil))
	for name := range strange {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !attempts[name].made() {
				t.Fatalf("control: without a sandbox it must be made: %s", printed)
			}
			s, e := confined.in(t)
			attempt := begin(s, name)
			reply, output, _, _ := e.run(attempt.line)
			if attempt.made() || !strings.Contains(output, "not permitted") {
				harness.Breach(t, "it was made (%t): %s", attempt.made(), output)
			}
			reports := ""
			for _, d := range e.denials.Of(reply.SessionID) {
				reports += d.Message + "\n"
			}
			if !strings.Contains(reports, ": git outside would ") {
				t.Errorf("not reported: %s", reports)
			}
		})
	}
}

// It holds for the repositories that lie outside of the project, without reports,
// and until the user takes it away.
func TestOnlyFilesAreMadeInEachRepository(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	defaults := share(t, harness.Defaults(nil))
	ignored := share(t, harness.Defaults(harness.Sandbox{"on_denied": "ignore"}))
	free := share(t, harness.Defaults(harness.Sandbox{"protected_paths": []string{"!.git"}}))
	nested := func(s *scene) {
		s.repository(s.Project)
		s.repository(s.ProjectPath("nested"))
	}
	module := func(s *scene) {
		layouts["submodule"](s)
		s.Project = filepath.Join(s.Outside, "super")
	}
	fresh := func(s *scene) { s.git(s.Outside, "init", "-q", s.Outside+"/x") }
	tests := map[string]struct {
		layout func(*scene)
		with   shared
		name   string // of the file, from the repository
		want   bool
	}{
		"worktree":          {layouts["worktree"], defaults, "logs/HEAD", false},
		"a worktree's own":  {layouts["worktree"], defaults, "worktrees/project/logs/HEAD", false},
		"of a bare one":     {layouts["worktree of a bare repository"], defaults, "logs/HEAD", false},
		"submodule":         {layouts["submodule"], defaults, "logs/HEAD", false},
		"not reported":      {layouts["repository"], ignored, "logs/HEAD", false},
		"a submodule's own": {module, defaults, "modules/deps/module/logs/HEAD", false},
		"nested":            {nested, defaults, "../nested/.git/logs/HEAD", false},
		"a new one":         {fresh, defaults, "logs/HEAD", false},
		"taken away":        {layouts["repository"], free, "logs/HEAD", true},
	}
	begin := func(s *scene, name string) placed {
		tests[name].layout(s)
		const line = "[ -d $G ] || git init -q; mkdir -p $(dirname $G/X); rm -f $G/X; ln -s $V $G/X"
		return s.place([2]string{strings.ReplaceAll(line, "X", tests[name].name), tests[name].name})
	}
	attempts := map[string]placed{}
	_, printed := withoutSandbox(t, maps.Keys(tests), func(s *scene, name string) string {
		attempts[name] = begin(s, name)
		return attempts[name].line
	})
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !attempts[name].made() {
				t.Fatalf("control: without a sandbox it must be made: %s", printed)
			}
			s, e := test.with.in(t)
			attempt := begin(s, name)
			if _, output, _, _ := e.run(attempt.line); attempt.made() != test.want {
				harness.Breach(t, "made: %t, want %t: %s", !test.want, test.want, output)
			}
		})
	}
}

// placed is a line that leaves something at a path, in a repository's directory.
type placed struct{ line, path string }

// place prepares a line of strange for the project.
func (s *scene) place(c [2]string) placed {
	s.T.Helper()
	dir := s.ProjectPath(".git")
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
		dir = strings.TrimSpace(s.git(s.Project, "rev-parse", "--git-common-dir"))
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.Project, dir)
	}
	victim := filepath.Join(s.Outside, "victim")
	harness.Write(s.T, victim, "precious\n")
	return placed{"export G=" + harness.Quote(dir) + " O=" + harness.Quote(s.Outside) + " V=" + harness.Quote(victim) +
		"\n" + c[0], filepath.Join(dir, c[1])}
}

// made reports whether it is there, and neither a file nor a directory.
func (p placed) made() bool {
	info, err := os.Lstat(p.path)
	return err == nil && !info.IsDir() && !info.Mode().IsRegular()
}

// everyday are parts of what people and agents do with git, each after a beginning.
// Each repository that git makes must believe that it has symlinks.
var everyday = []string{
	`git commit -q --amend -m "two, amended"; git tag v1; git tag -a -m note v2
git checkout -q main; echo b >b; git add b; git commit -qm b; git merge -q -m merged topic; git branch -d topic
echo dirty >>a; git stash -q; git stash pop -q; git checkout -q a
git checkout -q -b more HEAD~1; echo c >c; git add c; git commit -qm c; git rebase -q main; git checkout -q main
git cherry-pick more >/dev/null; git reset -q --hard HEAD~1; git revert --no-edit HEAD~1 -m 1 >/dev/null || git revert --abort
git worktree add -q wt more; git -C wt commit -q --allow-empty -m w; git worktree move wt wt2; git worktree remove wt2
git branch -m more most; git branch -q dir/one; git branch -m dir/one dir2/one; git branch -D most dir2/one >/dev/null`,
	`git notes add -m note; git bundle create -q x.bundle main; git rerere; git pack-refs --all; git reflog expire --all
git gc -q --prune=now; git repack -adq; git fsck 2>/dev/null; git maintenance run --quiet --task=commit-graph`,
	`say clone; git clone -q . clone; test "$(git -C clone config core.symlinks)" = ""; test -L clone/link
git clone -q --bare . bare.git; git push -q bare.git main
say init; git init -q fresh; test "$(git -C fresh config core.symlinks)" = ""; git init -q .
say submodule; git -c protocol.file.allow=always submodule --quiet update --init
test "$(git -C dep config core.symlinks)" = ""; test -L dep/link`,
}

const everydayBegins = `set -e
cd "$HOME/project"
say() { echo "== $1"; }
git checkout -q -b topic; echo 1 >a; ln -s a link; git add .; git commit -qm one; echo 2 >>a; git commit -qam two
`

const everydayEnds = `
test ! -e .git/index.lock; git status --porcelain >/dev/null; git log --oneline >/dev/null
say fine`

// git's own work goes on, with its probe for symlinks. The parts take turns.
func TestGitWorksWithOnlyFilesInItsRepository(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	for i, part := range everyday {
		if !harness.Turn(t, i, len(everyday)) {
			continue
		}
		for _, settings := range []string{harness.Off(), harness.Defaults(nil)} {
			s := newScene(t)
			s.repository(s.Project)
			dep := filepath.Join(s.Outside, "dep")
			s.repositoryWithLink(dep)
			// Registered, and not cloned yet: git makes the repository inside.
			s.git(s.Project, "submodule", "--quiet", "add", dep, "dep")
			s.git(s.Project, "commit", "-q", "-m", "dep")
			s.git(s.Project, "submodule", "--quiet", "deinit", "-f", "dep")
			harness.Must(t, os.RemoveAll(s.ProjectPath(".git/modules")))
			s.git(s.Project, "submodule", "--quiet", "init")
			if settings != harness.Off() {
				settings = harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{dep}})
			}
			e := s.start(settings, harness.Machine{})
			_, output, status, _ := e.run(everydayBegins + part + everydayEnds)
			if status != 0 || !strings.HasSuffix(strings.TrimSpace(output), "fine") {
				t.Errorf("%s: status %d: %s", settings, status, output)
			}
			for _, d := range e.denials.All() {
				if strings.Contains(d.Message, "git outside would") {
					t.Errorf("refused: %+v", d)
				}
			}
		}
	}
}

// repositoryWithLink makes a repository that holds a symlink.
func (s *scene) repositoryWithLink(dir string) {
	s.T.Helper()
	s.copied("link", dir, func(dir string) {
		s.git(filepath.Dir(dir), "init", "-q", dir)
		harness.Write(s.T, filepath.Join(dir, "file"), "content\n")
		harness.Must(s.T, os.Symlink("file", filepath.Join(dir, "link")))
		s.git(dir, "add", ".")
		s.git(dir, "commit", "-q", "-m", "link")
	})
}

// In a linked worktree, the repository of a new submodule lies in what the
// worktree has of its own.
func TestGitKnowsOfSymlinksInASubmoduleOfAWorktree(t *testing.T) {
	t.Parallel()
	requireObserver(t)
	s := newScene(t)
	dep, main := filepath.Join(s.Outside, "dep"), filepath.Join(s.Outside, "main")
	s.repositoryWithLink(dep)
	s.repository(main)
	s.git(main, "submodule", "--quiet", "add", dep, "dep")
	s.git(main, "commit", "-q", "-m", "dep")
	s.remake()
	s.git(main, "worktree", "add", "-q", s.Project)
	e := s.start(harness.Defaults(harness.Sandbox{"additional_read_only_paths": []string{dep}}), harness.Machine{})
	_, output, status, _ := e.run(`set -e; git submodule --quiet update --init
test "$(git -C dep config core.symlinks)" = ""; test -L dep/link; git rev-parse --git-dir`)
	if status != 0 {
		t.Errorf("status %d: %s", status, output)
	}
	own := filepath.Join(main, ".git", "worktrees", "project", "modules", "dep")
	if _, err := os.Lstat(own); err != nil {
		t.Errorf("control: the repository must be there: %v", err)
	}
}
