package settings

import (
	"slices"
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
		`{"additional_read_write_paths": ["~/dotfiles"]}`:                         true,
		`{"additional_read_write_paths": ["~/dotfiles"], "protected_paths": []}`:  false,
		`{"additional_read_write_paths": ["~/dotfiles/gitconfig"]}`:               false,
		`{"additional_read_write_paths": ["~/dotfiles", "~/dotfiles/gitconfig"]}`: false,
	} {
		protected := snapshotOf(t, tree, user, "").Compile(document.KindTool).Policy.Protected
		got := slices.ContainsFunc(protected, func(p policy.Protected) bool { return p.Path == "/home/u/dotfiles/gitconfig" })
		if got != want {
			t.Errorf("%s: protected %t: %+v", user, got, protected)
		}
	}
}
