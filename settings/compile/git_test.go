package compile

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

// worktree and submodule are projects whose repository lies outside of them.
var (
	worktree = map[string]string{
		"/home/u/main/.git/HEAD": "", "/home/u/main/.git/objects/": "", "/home/u/main/.git/refs/": "",
		"/home/u/main/.git/config":                      "",
		"/home/u/project/.git":                          "gitdir: /home/u/main/.git/worktrees/project\n",
		"/home/u/main/.git/worktrees/project/commondir": "../..\n",
		"/home/u/main/.git/worktrees/project/gitdir":    "/home/u/project/.git\n",
	}
	submodule = map[string]string{
		"/home/u/super/.git/modules/project/HEAD": "", "/home/u/super/.git/modules/project/objects/": "",
		"/home/u/super/.git/modules/project/refs/":  "",
		"/home/u/project/.git":                      "gitdir: ../super/.git/modules/project\n",
		"/home/u/super/.git/modules/project/config": "[core]\n\tworktree = ../../../../project\n",
	}
)

func TestCompile_GrantsARepositoryOutsideGuarded(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]struct {
		tree map[string]string
		dir  string
	}{"worktree": {worktree, "/home/u/main/.git"}, "submodule": {submodule, "/home/u/super/.git/modules/project"}} {
		for _, user := range []string{`{"enabled": true}`, `{"protected_paths": ["!*"]}`} {
			c := snapshotOf(t, resolvetest.Tree(t, layout.tree), user, "").Compile(document.KindTool)
			i := slices.IndexFunc(c.Policy.Rules, func(r policy.Rule) bool { return r.Path == layout.dir })
			if i < 0 || c.Policy.Rules[i].Access != policy.Read|policy.Write ||
				c.Policy.Rules[i].Guarded != policy.Write {
				t.Errorf("%s with %s: rules %+v", name, user, c.Policy.Rules)
			}
			for _, want := range []string{layout.dir + "/hooks", layout.dir + "/config"} {
				if !slices.ContainsFunc(c.Policy.Protected, func(p policy.Protected) bool { return p.Path == want }) {
					t.Errorf("%s with %s: %s is not protected: %+v", name, user, want, c.Policy.Protected)
				}
			}
		}
		// A grant of the user's is not taken back.
		c := snapshotOf(t, resolvetest.Tree(t, layout.tree), `{"additional_read_write_paths": ["/home/u"]}`,
			"").Compile(document.KindTool)
		for _, rule := range c.Policy.Rules {
			if rule.Guarded != 0 {
				t.Errorf("%s: %+v", name, rule)
			}
		}
	}
}

func TestCompile_ProtectedPathsAreRequiredWhereSomebodySaysSo(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for _, test := range []struct {
		user, project string
		want          bool
	}{
		{`{}`, ``, false},
		{`{"on_unavailable": "warn"}`, ``, false},
		{`{"on_unavailable": "refuse"}`, ``, true},
		{`{"on_unavailable": "refuse", "protected_paths": ["!*"]}`, ``, false},
		{`{"on_unavailable": "warn"}`, `{"on_unavailable": "refuse"}`, true},
		{`{"on_unavailable": "refuse"}`, `{"on_unavailable": "warn"}`, true},
	} {
		s := snapshotOf(t, f, test.user, test.project)
		if got := s.Compile(document.KindTerminal).Policy.RequireProtected; got != test.want {
			t.Errorf("user %s, project %s: %t", test.user, test.project, got)
		}
	}
}
