package compile

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// A pattern, and a file whose name is spelled like it, both stay: one is for
// names that do not exist, the other is mounted.
func TestSortProtected_KeepsAPatternBesideAFileOfItsName(t *testing.T) {
	t.Parallel()
	got := sortProtected([]policy.Protected{
		{Path: "/p/*.x", Pattern: true},
		{Path: "/p/b", Creatable: true},
		{Path: "/p/*.x"},
		{Path: "/p/b"},
		{Path: "/p/*.x", Pattern: true},
		{Path: "/p/b", Decides: true},
	})
	want := []policy.Protected{{Path: "/p/*.x"}, {Path: "/p/*.x", Pattern: true}, {Path: "/p/b", Decides: true}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	tree := resolvetest.Tree(t, map[string]string{"/home/u/project/*.code-workspace": ""})
	c := snapshotOf(t, tree, `{"enabled": true}`, "").Compile(document.KindTool)
	for _, pattern := range []bool{false, true} {
		is := func(p policy.Protected) bool {
			return p.Path == "/home/u/project/*.code-workspace" && p.Pattern == pattern
		}
		if !slices.ContainsFunc(c.Policy.Protected, is) {
			t.Errorf("the one with pattern %t is gone", pattern)
		}
	}
}
