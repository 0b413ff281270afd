package explain

import (
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// "git worktree add ../x" is told where it works. Other programs, and other
// places, have other advice.
func TestSuggest_AWorktreeBesideTheProject(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{"/home/u/project/.git/HEAD": "", "/home/u/project/.git/config": ""})
	s := snapshotOf(t, tree, `{"enabled": true}`, "")
	for _, test := range []struct {
		access, target, program string
		want                    string
	}{
		{"create", "/home/u/x", "git", besideHint},
		{"create", "/home/u/x", "mkdir", ""},
		{"remove", "/home/u/x", "git", ""},
		{"create", "/home/u/other/x", "git", ""},
		{"create", "/home/u/project/x", "git", ""},
		// git makes these to change its own files, and no working tree.
		{"create", "/home/u/.gitconfig.lock", "git", lockHint},
		{"create", "/home/u/.git-credentials.lock", "git", lockHint},
		{"create", "/home/u/x.lock", "git", lockHint},
		{"create", "/home/u/.gitconfig", "git", ""},
		{"create", "/home/u/x.lock", "mkdir", ""},
	} {
		got, err := Suggest(s, document.KindTool, test.access, test.target, test.program)
		must(t, err)
		for _, hint := range []string{besideHint, lockHint} {
			if (got.Hint == hint) != (test.want == hint) || test.want == hint && got.Key != "" {
				t.Errorf("%+v: %+v", test, got)
			}
		}
	}
}
