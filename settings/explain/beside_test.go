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
		want                    bool
	}{
		{"create", "/home/u/x", "git", true},
		{"create", "/home/u/x", "mkdir", false},
		{"remove", "/home/u/x", "git", false},
		{"create", "/home/u/other/x", "git", false},
		{"create", "/home/u/project/x", "git", false},
	} {
		got, err := Suggest(s, document.KindTool, test.access, test.target, test.program)
		must(t, err)
		if (got.Hint == besideHint) != test.want || test.want && got.Key != "" {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}
