package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// What git reads is protected in places that the user grants, but not the file
// that a grant names itself.
func TestCompile_ProtectsGitsConfigurationInGrants(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{
		"/home/u/project/.git/HEAD": "", "/home/u/.gitconfig": "-> dotfiles/gitconfig",
		"/home/u/dotfiles/gitconfig": "[core] hooksPath = ~/dotfiles/hooks\n",
	})
	for user, want := range map[string]bool{
		`{"additional_read_write_paths": ["~/dotfiles"]}`:                            true,
		`{"additional_read_write_paths": ["~/dotfiles"], "protected_paths": ["!*"]}`: false,
		`{"additional_read_write_paths": ["~/dotfiles/gitconfig"]}`:                  false,
		`{"additional_read_write_paths": ["~/dotfiles", "~/dotfiles/gitconfig"]}`:    false,
	} {
		protected := snapshotOf(t, tree, user, "").Compile(document.KindTool).Policy.Protected
		got := slices.ContainsFunc(protected, func(p policy.Protected) bool {
			return p.Path == "/home/u/dotfiles/gitconfig"
		})
		if got != want {
			t.Errorf("%s: protected %t: %+v", user, got, protected)
		}
	}
}

// The .git file of a working tree is protected where a grant lets sessions write it,
// unless the user means just that file. If there are too many, the reply says so.
func TestCompile_ProtectsTheFilesOfWorkingTreesInGrants(t *testing.T) {
	t.Parallel()
	const own = "/home/u/project/.git"
	entries := map[string]string{
		own + "/HEAD": "", own + "/objects/": "", own + "/refs/": "", own + "/config": "",
		own + "/worktrees/x/gitdir": "/home/u/trees/a/b/x/.git\n",
		"/home/u/trees/a/b/x/.git":  "gitdir: " + own + "/worktrees/x\n",
		own + "/worktrees/y/gitdir": "/home/u/trees/a/b/y/.git\n", "/home/u/trees/a/b/y/": "",
	}
	for i := range 100 {
		entries[fmt.Sprintf("/home/u/trees/0/%d/", i)] = ""
	}
	const x, y = "/home/u/trees/a/b/x/.git", "/home/u/trees/a/b/y/.git"
	protects := func(user string) map[string]bool {
		found := map[string]bool{}
		c := snapshotOf(t, resolvetest.InMemory(entries), user, "").Compile(document.KindTool)
		for _, one := range c.Policy.Protected {
			found[one.Path] = true
		}
		return found
	}
	for user, want := range map[string]bool{
		`{"additional_read_write_paths": ["~/trees"]}`:                                    true,
		`{"additional_read_write_paths": ["~/trees"], "protected_paths": ["!~/trees/a"]}`: false,
		`{"additional_read_write_paths": ["~/trees/a/b/x/.git"]}`:                         false,
		`{"additional_read_only_paths": ["~/trees"]}`:                                     false,
		`{"enabled": true}`: false,
	} {
		if got := protects(user); got[x] != want || got[y] {
			t.Errorf("%s: %t, want %t; a missing one: %t", user, got[x], want, got[y])
		}
	}
	for i := range 2000 {
		entries[fmt.Sprintf("%s/worktrees/%d/gitdir", own, i)] = fmt.Sprintf("/home/u/%d/.git\n", i)
	}
	c := snapshotOf(t, resolvetest.InMemory(entries), `{"enabled": true}`, "").Compile(document.KindTool)
	if !strings.Contains(strings.Join(c.Warnings, "\n"), "the .git files of some are not protected; prune some") {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Too many submodules are protected as a whole, and the reply says so.
func TestCompile_SaysThatSubmodulesAreReadOnly(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"/home/u/project/.git/HEAD": ""}
	for i := range 2000 {
		tree[fmt.Sprintf("/home/u/project/.git/modules/%d/HEAD", i)] = ""
	}
	c := snapshotOf(t, resolvetest.InMemory(tree), `{"enabled": true}`, "").Compile(document.KindTool)
	const whole = "/home/u/project/.git/modules"
	if !slices.ContainsFunc(c.Policy.Protected, func(p policy.Protected) bool { return p.Path == whole }) {
		t.Errorf("not protected: %+v", c.Policy.Protected)
	}
	if !strings.Contains(strings.Join(c.Warnings, "\n"), ".git/modules and .git/worktrees are read-only") {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// An exception of one name that a built-in pattern covers would hold only while
// the file exists. So it takes nothing away, and says what does.
func TestCompile_ANameOfAPatternIsNoException(t *testing.T) {
	t.Parallel()
	tree := resolvetest.Tree(t, map[string]string{"/home/u/project/.aider.conf.yml": ""})
	for name, entries := range map[string]string{
		"exists": `"!.aider.conf.yml"`, "is missing": `"!.aider.conf.json"`,
	} {
		c := snapshotOf(t, tree, `{"enabled": true, "protected_paths": [`+entries+`]}`, "").Compile(document.KindTool)
		if !slices.ContainsFunc(c.Policy.Protected, func(p policy.Protected) bool {
			return p.Path == "/home/u/project/.aider.conf.yml"
		}) {
			t.Errorf("%s: not protected", name)
		}
		if text := fmt.Sprint(c.Diagnostics); !strings.Contains(text, `take that away with "!.aider.conf*"`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
