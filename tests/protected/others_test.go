//go:build linux

package protected

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// A day with Mercurial beside git: commits, a branch, an update, a push. Jujutsu is
// in no package, so the files that it writes stand for it.
const otherWork = `set -e
echo more >>file; hg commit -q -u me -m second; git commit -qam second
echo new >new; hg add -q new; hg commit -q -u me -m third; hg status; hg log -q | grep -q '^2:'
hg update -q 0; hg update -q tip; hg bookmark work; hg tag -u me one; hg push -q PUSHED; hg -R PUSHED log -q | grep -q '^2:'
echo x >.jj/repo/op_store/views; mv .jj/repo/op_store/views .jj/repo/op_store/more; echo y >.jj/working_copy/tree_state
git add new; git commit -qm third; git status --short
echo fine`

// Other version control works beside git. What it runs for the user outside is
// protected: a hook of Mercurial's, and the configuration of Jujutsu's.
func TestOtherVersionControlBesideGit(t *testing.T) {
	t.Parallel()
	harness.Require(t, "filesystem")
	harness.RequirePrograms(t, "hg")
	others := []string{"repository", "worktree", "package"}
	for i, layout := range others {
		if !harness.Turn(t, i, len(others)) {
			continue
		}
		for _, protect := range []bool{true, false} {
			t.Run(fmt.Sprint(layout, ", protected ", protect), func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				layouts[layout](s)
				pushed := filepath.Join(s.Outside, "pushed.hg")
				harness.Write(t, s.ProjectPath(".hgignore"), "^\\.(git|jj|hgignore)\n")
				for _, path := range []string{
					".jj/repo/op_store/root", ".jj/repo/config.toml", ".jj/repo/store/type", ".jj/working_copy/type",
				} {
					harness.Write(t, s.ProjectPath(path), "git")
				}
				s.outside("hg init && hg add -q file && hg commit -q -u me -m first && hg init " + harness.Quote(pushed))
				block := harness.Sandbox{"additional_read_write_paths": []string{pushed}}
				if !protect {
					block["protected_paths"] = []string{"!*"}
				}
				e := s.start(harness.Defaults(block), harness.Machine{})
				line := strings.ReplaceAll(otherWork, "PUSHED", harness.Quote(pushed))
				_, output, status, end := e.run(line)
				if status != 0 || !strings.HasSuffix(strings.TrimSpace(output), "fine") || len(end.Review) > 0 {
					t.Fatalf("status %d, %+v: %s", status, end.Review, output)
				}
				_, output, _, end = e.run(`printf '[hooks]\npre-status = echo ran >ran\n' >.hg/hgrc; echo evil >.jj/repo/config.toml`)
				s.outside("hg status")
				ran := harness.Read(t, s.ProjectPath("ran")) != ""
				changed := harness.Read(t, s.ProjectPath(".jj/repo/config.toml")) == "evil\n"
				if protect && (ran || changed) && len(end.Review) == 0 {
					harness.Breach(t, "a hook ran: %v, the configuration changed: %v: %s", ran, changed, output)
				}
				if !protect && (!ran || !changed) {
					t.Errorf("control: a hook ran: %v, the configuration changed: %v: %s", ran, changed, output)
				}
			})
		}
	}
}

// outside runs a line in the project without a sandbox.
func (s *scene) outside(line string) {
	s.T.Helper()
	command := exec.Command("/bin/sh", "-c", line)
	command.Dir, command.Env = s.Project, append(harness.Environ(s.World), "HGPLAIN=1")
	if out, err := command.CombinedOutput(); err != nil {
		s.T.Fatalf("%s: %v\n%s", line, err, out)
	}
}
