//go:build linux

package protected

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

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
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.repository(s.Project)
			s.git(s.Project, "checkout", "-q", "-B", "main")
			s.git(s.Project, "commit", "-q", "--allow-empty", "-m", "first")
			nested := s.ProjectPath("node_modules/x")
			if err := os.MkdirAll(nested, 0o700); err != nil {
				t.Fatal(err)
			}
			s.repository(nested)
			s.git(nested, "commit", "-q", "--allow-empty", "-m", "x")
			s.git(nested, "config", "core.fsmonitor", "touch "+s.ProjectPath("ran")+"; false")
			e := s.start(harness.Defaults(nil), harness.Machine{})
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
			place := test.place
			if place == "ran" {
				place = "node_modules/x"
			}
			named := slices.Contains(s.review(end), "stored in git "+place)
			if !named || !strings.Contains(end.Review[0].Message, test.ref) {
				harness.Breach(t, "the review does not name it: %+v: %s", end.Review, output)
			}
		})
	}
}
