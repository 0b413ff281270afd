package settings

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// with joins trees.
func with(trees ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, tree := range trees {
		maps.Copy(all, tree)
	}
	return all
}

// repository is a tree with a repository in a directory.
func repository(dir string) map[string]string {
	return map[string]string{
		dir + "/HEAD": "ref: refs/heads/main\n", dir + "/objects/": "", dir + "/refs/": "", dir + "/hooks/": "", dir +
			"/config": "[core]\n\tbare = false\n",
	}
}

const gitProject = "/home/u/project"

// worktree is a project that is a linked worktree of a repository elsewhere.
var worktree = with(repository("/home/u/main/.git"), map[string]string{
	gitProject + "/.git":                                "gitdir: /home/u/main/.git/worktrees/project\n",
	"/home/u/main/.git/worktrees/project/commondir":     "../..\n",
	"/home/u/main/.git/worktrees/project/gitdir":        gitProject + "/.git\n",
	"/home/u/main/.git/worktrees/project/HEAD":          "ref: refs/heads/side\n",
	"/home/u/main/.git/worktrees/other/commondir":       "../..\n",
	"/home/u/main/.git/worktrees/other/gitdir":          "/home/u/other/.git\n",
	"/home/u/main/.git/worktrees/other/config.worktree": "",
})

// submodule is a project that is a submodule of one elsewhere.
var submodule = with(repository("/home/u/super/.git/modules/project"), map[string]string{
	gitProject + "/.git":                        "gitdir: ../super/.git/modules/project\n",
	"/home/u/super/.git/modules/project/config": "[core]\n\tbare = false\n\tworktree = ../../../../project\n",
})

func TestFindGit_KnowsTheLayouts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		Tree              map[string]string
		inside            string // relative to the project
		outside           string
		protectedOutside  string // relative to the repository
		withoutDotGitDirs bool
	}{
		{name: "no repository", Tree: map[string]string{gitProject + "/": ""}},
		{name: "a repository", Tree: with(repository(gitProject + "/.git")), inside: ".git/commondir .git/config .git/hooks"},
		{
			name: "submodules in it, one in the other",
			Tree: with(repository(gitProject+"/.git"), repository(gitProject+"/.git/modules/deps/a"), map[string]string{
				gitProject + "/.gitmodules": "[submodule \"deps/a\"]\n\tpath = deps/a\n[submodule \"x\"]\n\tpath = ../x\n",
				gitProject + "/deps/a/.git": "gitdir: ../../.git/modules/deps/a\n", gitProject +
					"/.git/modules/deps/a/modules/b/HEAD": "",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/modules/deps/a/commondir .git/modules/deps/a/config " +
				".git/modules/deps/a/hooks " +
				".git/modules/deps/a/modules/b/commondir .git/modules/deps/a/modules/b/config " +
				".git/modules/deps/a/modules/b/hooks deps/a/.git",
		},
		{
			name: "worktrees of it",
			Tree: with(repository(gitProject+"/.git"), map[string]string{
				gitProject + "/.git/worktrees/w/gitdir": "/w/.git\n", gitProject + "/.git/worktrees/w/config.worktree": "",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/worktrees/w/commondir .git/worktrees/w/config.worktree " +
				".git/worktrees/w/gitdir",
		},
		{
			name: "hooks elsewhere, and more configuration",
			Tree: with(repository(gitProject+"/.git"), map[string]string{
				gitProject + "/.git/config": "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = ../.gitconfig\n\tpath = " +
					"~/.gitconfig\n[includeIf \"gitdir:x\"]\n path = more\n",
				gitProject + "/.gitconfig": "[core] hooksPath = \"tools/hooks\" # theirs\n[include]\n\tpath = .gitconfig\n",
				gitProject + "/.git/more":  "",
				"/home/u/.gitconfig":       "[core]\n\thooksPath = .githooks\n",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/more .gitconfig .githooks .husky/_ tools/hooks",
		},
		{
			name: "a linked worktree", Tree: worktree, inside: ".git", outside: "/home/u/main/.git",
			protectedOutside: "commondir config hooks worktrees/other/commondir worktrees/other/config.worktree " +
				"worktrees/other/gitdir " +
				"worktrees/project/commondir worktrees/project/gitdir",
		},
		{
			name: "a submodule", Tree: submodule, inside: ".git", outside: "/home/u/super/.git/modules/project",
			protectedOutside: "commondir config hooks",
		},
		{
			name: "a linked worktree that does not name the project",
			Tree: with(worktree, map[string]string{"/home/u/main/.git/worktrees/project/gitdir": "/home/u/elsewhere/.git\n"}), inside: ".git",
		},
		{
			name: "a linked worktree of what is no repository",
			Tree: with(worktree, map[string]string{"/home/u/main/.git/worktrees/project/commondir": "../../..\n"}), inside: ".git",
		},
		{
			name: "a linked worktree whose common directory is elsewhere",
			Tree: with(worktree, repository("/home/u/.ssh"),
				map[string]string{"/home/u/main/.git/worktrees/project/commondir": "/home/u/.ssh\n"}), inside: ".git",
		},
		{
			name: "a submodule that is checked out elsewhere",
			Tree: with(submodule, map[string]string{"/home/u/super/.git/modules/project/config": "[core]\n\tworktree = " +
				"../../../other\n"}), inside: ".git",
		},
		{name: "a pointer to a directory of the user's",
			Tree: map[string]string{gitProject + "/.git": "gitdir: /home/u/.ssh\n", "/home/u/.ssh/": ""}, inside: ".git"},
		{name: "a file that is no pointer", Tree: map[string]string{gitProject + "/.git": "hello"}, inside: ".git"},
	} {
		found := findGit(resolve.NewView(resolvetest.Tree(t, test.Tree)), "/home/u", gitProject)
		relative := func(dir string, paths []string) string {
			var names []string
			for _, path := range paths {
				names = append(names, strings.TrimPrefix(path, dir+"/"))
			}
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		if got := relative(gitProject, found.inside); got != test.inside {
			t.Errorf("%s: protected inside:\n got %s\nwant %s", test.name, got, test.inside)
		}
		if got := strings.Join(found.outside, " "); got != test.outside {
			t.Errorf("%s: outside: %q, want %q", test.name, got, test.outside)
		}
		if got := relative(test.outside, found.outsideProtected); got != test.protectedOutside {
			t.Errorf("%s: protected outside:\n got %s\nwant %s", test.name, got, test.protectedOutside)
		}
	}
}

func TestCompile_GrantsARepositoryOutsideGuarded(t *testing.T) {
	t.Parallel()
	for name, layout := range map[string]struct {
		Tree map[string]string
		dir  string
	}{"worktree": {worktree, "/home/u/main/.git"}, "submodule": {submodule, "/home/u/super/.git/modules/project"}} {
		for _, user := range []string{`{"enabled": true}`, `{"protected_paths": []}`} {
			c := snapshotOf(t, resolvetest.Tree(t, layout.Tree), user, "").Compile(document.KindTool)
			i := slices.IndexFunc(c.Policy.Rules, func(r policy.Rule) bool { return r.Path == layout.dir })
			if i < 0 || c.Policy.Rules[i].Access != policy.Read|policy.Write || c.Policy.Rules[i].Guarded != policy.Write {
				t.Errorf("%s with %s: rules %+v", name, user, c.Policy.Rules)
			}
			for _, want := range []string{layout.dir + "/hooks", layout.dir + "/config"} {
				if !slices.ContainsFunc(c.Policy.Protected, func(p policy.Protected) bool { return p.Path == want }) {
					t.Errorf("%s with %s: %s is not protected: %+v", name, user, want, c.Policy.Protected)
				}
			}
		}
		// What the user grants anyway is not taken back.
		c := snapshotOf(t, resolvetest.Tree(t, layout.Tree), `{"additional_read_write_paths": ["/home/u"]}`, "").Compile(document.KindTool)
		for _, rule := range c.Policy.Rules {
			if rule.Guarded != 0 {
				t.Errorf("%s: %+v", name, rule)
			}
		}
	}
}

func TestCompile_ProtectedPathsAreRequiredWhereSomebodySaysSo(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{gitProject + "/": ""})
	for _, test := range []struct {
		user, project string
		want          bool
	}{
		{`{}`, ``, false},
		{`{"on_unavailable": "warn"}`, ``, false},
		{`{"on_unavailable": "refuse"}`, ``, true},
		{`{"on_unavailable": "refuse", "protected_paths": []}`, ``, false},
		{`{"on_unavailable": "warn"}`, `{"on_unavailable": "refuse"}`, true},
		{`{"on_unavailable": "refuse"}`, `{"on_unavailable": "warn"}`, true},
	} {
		if got := snapshotOf(t, f, test.user, test.project).Compile(document.KindTerminal).Policy.RequireProtected; got != test.want {
			t.Errorf("user %s, project %s: %t", test.user, test.project, got)
		}
	}
}

func TestGitConfigValues(t *testing.T) {
	t.Parallel()
	const config = "; comment\n[Core]\n\thooksPath = a b  \n hookspath=\"c # d\" ; e\n[core \"sub]\\\"\"] hooksPath = " +
		"\\\"q\\\\\n[other]\nhooksPath = no\n" +
		"[core.old]\nHOOKSPATH = f\\\n g\n[core]\nhooksPath\nhooksPathX = no\nhooksPath =\n# hooksPath = no\n"
	got := gitConfigValues(config, "core", "hookspath")
	if want := []string{"a b", "c # d", `"q\`, "f g", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzGitConfigValues(f *testing.F) {
	f.Add("[core]\n\thooksPath = x\n")
	f.Add("[a \"]\\\"\"]\\\n=\"")
	f.Fuzz(func(t *testing.T, content string) {
		for _, value := range gitConfigValues(content, "core", "hookspath") {
			if len(value) > len(content) {
				t.Errorf("%q is longer than what it stands in", value)
			}
		}
	})
}
