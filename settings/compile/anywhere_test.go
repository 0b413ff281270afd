package compile

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// "**/name" stands for the names that exist at any depth of the project; new ones
// are protected too.
func TestCompile_NamesAnywhere(t *testing.T) {
	t.Parallel()
	const project = "/home/u/project"
	f := resolvetest.Tree(t, map[string]string{
		project + "/.env": "", project + "/a/b/.env": "", project + "/a/b/c.rules": "", project + "/a/keys/.env": "",
		project + "/node_modules/x/.env": "", "/home/u/.env": "", project + "/a/link": "-> /home/u/project/a/b",
	})
	c := snapshotOf(t, f, `{"enabled": true, "hidden_paths": ["**/.env", "**/keys"], "protected_paths": ["**/*.rules"]}`, "").
		Compile(document.KindTool)
	var hidden []string
	for _, one := range c.Policy.Hidden {
		hidden = append(hidden, one.Path)
	}
	for _, want := range []string{"/.env", "/a/b/.env", "/a/keys"} {
		if !slices.Contains(hidden, project+want) {
			t.Errorf("%s is not hidden: %q", want, hidden)
		}
	}
	for _, not := range []string{project + "/node_modules/x/.env", "/home/u/.env"} {
		if slices.Contains(hidden, not) {
			t.Errorf("%s is hidden", not)
		}
	}
	for path, want := range map[string]bool{
		"/a/b/c.rules": true, "/new/deep/x.rules": true, "/x.rules": true, "/a/x.rules/below": true, "/a/rules": false,
		"/node_modules/x/y.rules": false, "/a/b/.git/y.rules": false,
	} {
		if _, got := c.Policy.ProtectedAt(project + path); got != want {
			t.Errorf("%s: protected: %t", path, got)
		}
	}
	if len(c.Diagnostics) != 0 || len(c.Warnings) != 0 {
		t.Errorf("%v, %v", c.Diagnostics, c.Warnings)
	}
}

// An entry that cannot be understood starts nothing.
func TestCompile_NamesAnywhereThatAreNone(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/x": ""})
	for _, entry := range []string{"**/", "**/a/b", "**/..", "**/**", "**/a**"} {
		for _, key := range []string{"hidden_paths", "protected_paths"} {
			c := snapshotOf(t, f, `{"enabled": true, "`+key+`": ["`+entry+`"]}`, "").Compile(document.KindTool)
			if said := said(c, userFile); !strings.Contains(said, errAnywhere.Error()) {
				t.Errorf("%s %s: %s", key, entry, said)
			}
		}
	}
}

// A search that comes to a bound is in the reply. A project's entry cannot use up
// what bounds the user's.
func TestCompile_NamesAnywhereAreBounded(t *testing.T) {
	t.Parallel()
	const project = "/home/u/project"
	tree := map[string]string{project + "/z/z/z/.env": ""}
	for i := range resolve.MaxFound + 1 {
		tree[project+"/d/"+strconv.Itoa(i)+".x"] = ""
	}
	f := resolvetest.InMemory(tree)
	c := snapshotOf(t, f, `{"enabled": true, "hidden_paths": ["**/.env"]}`, `{"hidden_paths": ["**/*.x"]}`).
		Compile(document.KindTool)
	if _, hidden := c.Policy.HiddenAt(project + "/z/z/z/.env"); !hidden {
		t.Error("the user's is not hidden")
	}
	warned := func(w string) bool {
		return strings.Contains(w, `"**/*.x"`) && strings.Contains(w, "not all of them count")
	}
	if !slices.ContainsFunc(c.Warnings, warned) {
		t.Errorf("%q", c.Warnings)
	}
	if slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, ".env") }) {
		t.Errorf("the user's came to no bound: %q", c.Warnings)
	}
}

// However often one evaluation considers the settings, it searches once for each
// file's names.
func TestCompile_SearchesOnce(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/a/.env": ""})
	var asked []string
	find := f.Find
	f.Find = func(root string, patterns []string) ([]string, error) {
		asked = append(asked, strings.Join(patterns, " "))
		return find(root, patterns)
	}
	snapshotOf(t, f, `{"enabled": true, "hidden_paths": ["**/.env", "**/.key"], "protected_paths": ["**/x"]}`,
		`{"protected_paths": ["**/y"], "hidden_paths": ["**/z"]}`).Compile(document.KindTool)
	if want := []string{".env .key x", "z y"}; !slices.Equal(asked, want) {
		t.Errorf("searched for %q", asked)
	}
	asked = nil
	snapshotOf(t, f, `{"enabled": true, "hidden_paths": ["*.env"]}`, "").Compile(document.KindTool)
	if len(asked) != 0 {
		t.Errorf("without such an entry: searched for %q", asked)
	}
}
