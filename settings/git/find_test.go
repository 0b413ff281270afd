package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
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

// linkedWorktree is a project that is a linked worktree of a repository elsewhere.
var linkedWorktree = with(repository("/home/u/main/.git"), map[string]string{
	gitProject + "/.git":                                "gitdir: /home/u/main/.git/worktrees/project\n",
	"/home/u/main/.git/worktrees/project/commondir":     "../..\n",
	"/home/u/main/.git/worktrees/project/gitdir":        gitProject + "/.git\n",
	"/home/u/main/.git/worktrees/project/HEAD":          "ref: refs/heads/side\n",
	"/home/u/main/.git/worktrees/other/commondir":       "../..\n",
	"/home/u/main/.git/worktrees/other/gitdir":          "/home/u/other/.git\n",
	"/home/u/main/.git/worktrees/other/config.worktree": "",
})

// checkedOutSubmodule is a project that is a submodule of one elsewhere.
var checkedOutSubmodule = with(repository("/home/u/super/.git/modules/project"), map[string]string{
	gitProject + "/.git":                        "gitdir: ../super/.git/modules/project\n",
	"/home/u/super/.git/modules/project/config": "[core]\n\tbare = false\n\tworktree = ../../../../project\n",
})

func TestFindGit_KnowsTheLayouts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name              string
		tree              map[string]string
		inside            string // relative to the project
		outside           string
		protectedOutside  string // relative to the repository
		withoutDotGitDirs bool
	}{
		{name: "no repository", tree: map[string]string{gitProject + "/": ""}},
		{
			name: "a repository", tree: with(repository(gitProject + "/.git")),
			inside: ".git/commondir .git/config .git/hooks",
		},
		{
			name: "submodules in it, one in the other",
			tree: with(repository(gitProject+"/.git"), repository(gitProject+"/.git/modules/deps/a"), map[string]string{
				gitProject + "/.gitmodules": "[submodule \"deps/a\"]\n\tpath = deps/a\n[submodule " +
					"\"x\"]\n\tpath = ../x\n",
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
			tree: with(repository(gitProject+"/.git"), map[string]string{
				gitProject + "/.git/worktrees/w/gitdir": "/w/.git\n", gitProject +
					"/.git/worktrees/w/config.worktree": "",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/worktrees/w/commondir " +
				".git/worktrees/w/config.worktree .git/worktrees/w/gitdir",
		},
		{
			name: "hooks elsewhere, and more configuration",
			tree: with(repository(gitProject+"/.git"), map[string]string{
				gitProject + "/.git/config": "[core]\n\thooksPath = .husky/_\n[include]\n\tpath = " +
					"../.gitconfig\n\tpath = ~/.gitconfig\n[includeIf \"gitdir:x\"]\n path = more\n",
				gitProject + "/.gitconfig": "[core] hooksPath = \"tools/hooks\" # theirs\n[include]\n\tpath = " +
					".gitconfig\n", gitProject + "/.git/more": "",
				"/home/u/.gitconfig": "[core]\n\thooksPath = .githooks\n",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/more .gitconfig .githooks .husky/_ tools/hooks",
		},
		{
			name: "hooks by a relative path, a submodule and a worktree in the project, others elsewhere",
			tree: with(repository(gitProject+"/.git"), repository(gitProject+"/.git/modules/dep"), map[string]string{
				gitProject + "/.git/config":             "[core]\n\thooksPath = .husky\n",
				gitProject + "/.git/worktrees/w/gitdir": gitProject + "/trees/w/.git\n",
				gitProject + "/.git/worktrees/x/gitdir": "/home/u/x/.git\n",
				gitProject + "/.git/modules/dep/config": "[core]\n\tworktree = ../../../dep\n\thooksPath = theirs\n",
			}),
			inside: ".git/commondir .git/config .git/hooks .git/modules/dep/commondir .git/modules/dep/config " +
				".git/modules/dep/hooks .git/worktrees/w/commondir .git/worktrees/w/gitdir " +
				".git/worktrees/x/commondir .git/worktrees/x/gitdir .husky dep/.husky dep/theirs theirs " +
				"trees/w/.husky trees/w/theirs",
		},
		{
			name: "a directory of a repository",
			tree: with(repository("/home/u/.git"), map[string]string{
				"/home/u/.git/config": "[core]\n\thooksPath = project/hooks\n", gitProject + "/": "",
			}),
			inside: "hooks project/hooks",
		},
		{
			name: "a directory of a linked worktree",
			tree: with(repository("/home/main/.git"), map[string]string{
				"/home/main/.git/config":                "[core]\n\thooksPath = project/hooks\n",
				"/home/main/.git/worktrees/u/commondir": "../..\n",
				"/home/main/.git/worktrees/u/gitdir":    "/home/u/.git\n",
				"/home/u/.git":                          "gitdir: /home/main/.git/worktrees/u\n", gitProject + "/": "",
			}),
			inside: "hooks project/hooks",
		},
		{
			name: "a directory of a repository, with an empty one that a session has made",
			tree: with(repository("/home/u/.git"), map[string]string{
				"/home/u/.git/config": "[core]\n\thooksPath = project/hooks\n", gitProject + "/.git/": "",
			}),
			inside: ".git/commondir .git/config .git/hooks hooks project/hooks",
		},
		{
			name: "a linked worktree", tree: linkedWorktree, inside: ".git", outside: "/home/u/main/.git",
			protectedOutside: "commondir config hooks worktrees/other/commondir worktrees/other/config.worktree " +
				"worktrees/other/gitdir " +
				"worktrees/project/commondir worktrees/project/gitdir",
		},
		{
			name: "a submodule", tree: checkedOutSubmodule, inside: ".git",
			outside: "/home/u/super/.git/modules/project", protectedOutside: "commondir config hooks",
		},
		{
			name: "a linked worktree that does not name the project",
			tree: with(linkedWorktree, map[string]string{
				"/home/u/main/.git/worktrees/project/gitdir": "/home/u/elsewhere/.git\n",
			}), inside: ".git",
		},
		{
			name: "a linked worktree of what is no repository",
			tree: with(linkedWorktree, map[string]string{
				"/home/u/main/.git/worktrees/project/commondir": "../../..\n",
			}), inside: ".git",
		},
		{
			name: "a linked worktree whose common directory is elsewhere",
			tree: with(linkedWorktree, repository("/home/u/.ssh"),
				map[string]string{"/home/u/main/.git/worktrees/project/commondir": "/home/u/.ssh\n"}), inside: ".git",
		},
		{
			name: "a submodule that is checked out elsewhere",
			tree: with(checkedOutSubmodule,
				map[string]string{"/home/u/super/.git/modules/project/config": "[core]\n\tworktree = " +
					"../../../other\n"}), inside: ".git",
		},
		{
			name:   "a pointer to a directory of the user's",
			tree:   map[string]string{gitProject + "/.git": "gitdir: /home/u/.ssh\n", "/home/u/.ssh/": ""},
			inside: ".git",
		},
		{
			name: "repositories in it, which nothing names",
			tree: with(repository(gitProject+"/.git"), repository(gitProject+"/a/b/.git"),
				repository(gitProject+"/hidden"),
				repository(gitProject+"/node_modules/x/.git"), map[string]string{
					gitProject + "/c/.git": "gitdir: ../hidden\n", gitProject + "/d/.git": "gitdir: /home/u/.ssh\n",
					gitProject + "/e/.git": "hello", gitProject + "/f/.git/": "", gitProject +
						"/g/.git": "-> ../a/b/.git",
				}),
			inside: ".git/commondir .git/config .git/hooks a/b/.git/commondir a/b/.git/config a/b/.git/hooks " +
				"c/.git d/.git hidden/commondir hidden/config hidden/hooks",
		},
		{
			name: ".git is a symlink into the project",
			tree: with(repository(gitProject+"/x/y"), map[string]string{
				gitProject + "/.git": "-> x/y", gitProject + "/x/y/worktrees/w/gitdir": "/w/.git\n",
			}),
			inside: ".git x/y/commondir x/y/config x/y/hooks x/y/worktrees/w/commondir x/y/worktrees/w/gitdir",
		},
		{
			name:   ".git is a symlink out of the project",
			tree:   with(repository("/home/u/.ssh"), map[string]string{gitProject + "/.git": "-> /home/u/.ssh"}),
			inside: ".git",
		},
		{
			name:   ".git is a symlink to the project",
			tree:   with(repository(gitProject), map[string]string{gitProject + "/.git": "-> ."}),
			inside: ".git",
		},
		{name: "a file that is no pointer", tree: map[string]string{gitProject + "/.git": "hello"}, inside: ".git"},
	} {
		found := Find(resolve.NewView(resolvetest.Tree(t, test.tree)), resolve.Host{Platform: "linux", Home: "/home/u"},
			gitProject, nil)
		relative := func(dir string, paths []string) string {
			var names []string
			for _, path := range paths {
				names = append(names, strings.TrimPrefix(path, dir+"/"))
			}
			slices.Sort(names)
			return strings.Join(names, " ")
		}
		if got := relative(gitProject, found.Inside); got != test.inside {
			t.Errorf("%s: protected inside:\n got %s\nwant %s", test.name, got, test.inside)
		}
		if got := strings.Join(found.Outside, " "); got != test.outside {
			t.Errorf("%s: outside: %q, want %q", test.name, got, test.outside)
		}
		if got := relative(test.outside, found.OutsideProtected); got != test.protectedOutside {
			t.Errorf("%s: protected outside:\n got %s\nwant %s", test.name, got, test.protectedOutside)
		}
	}
}

// The search for nested repositories is bounded, and the bound is no secret.
func TestFindGit_NestedRepositoriesAreBounded(t *testing.T) {
	t.Parallel()
	tree := repository(gitProject + "/.git")
	find := func() Repository {
		return Find(resolve.NewView(resolvetest.InMemory(tree)), resolve.Host{Platform: "linux", Home: "/home/u"},
			gitProject, nil)
	}
	for i := range maxNested {
		maps.Copy(tree, repository(fmt.Sprintf("%s/%d/.git", gitProject, i)))
	}
	if found := find(); found.Uncounted || len(found.Inside) != 3*(maxNested+1) {
		t.Errorf("at the bound: %t, %d paths", found.Uncounted, len(found.Inside))
	}
	maps.Copy(tree, repository(gitProject+"/more/.git"))
	if found := find(); !found.Uncounted || len(found.Inside) != 3*(maxNested+1) {
		t.Errorf("behind the bound: %t, %d paths", found.Uncounted, len(found.Inside))
	}
}

// So is the number of directories that are searched.
func TestFindGit_SaysWhereTheSearchEnds(t *testing.T) {
	t.Parallel()
	tree := repository(gitProject + "/.git")
	for i := range maxNestedDirs - 1 { // the project's is one, too
		tree[fmt.Sprintf("%s/%d/", gitProject, i)] = ""
	}
	find := func() Repository {
		return Find(resolve.NewView(resolvetest.InMemory(tree)), resolve.Host{Platform: "linux", Home: "/home/u"},
			gitProject, nil)
	}
	if find().Unsearched {
		t.Error("the search ends at the bound")
	}
	tree[gitProject+"/more/"] = ""
	if !find().Unsearched {
		t.Error("the search does not say that it ends")
	}
	f := resolvetest.InMemory(with(repository(gitProject+"/.git"), repository(gitProject+"/sub/.git")))
	dirs := f.Dirs
	f.Dirs = func(path string) ([]string, error) {
		names, err := dirs(path)
		if path == gitProject {
			err = resolve.ErrNotAllFound
		}
		return names, err
	}
	found := Find(resolve.NewView(f), resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
	if !found.Unsearched || !slices.Contains(found.Inside, gitProject+"/sub/.git/hooks") {
		t.Errorf("of a list that ends: %t, %q", found.Unsearched, found.Inside)
	}
}

// Decoys do not push out what is real: too much is protected as a whole.
func TestFindGit_ProtectsWholeDirectoriesIfThereIsTooMuch(t *testing.T) {
	t.Parallel()
	for name, decoy := range map[string]func(i int) string{
		"submodules":     func(i int) string { return fmt.Sprintf("modules/a%04d/HEAD", i) },
		"configurations": func(i int) string { return fmt.Sprintf("worktrees/a%04d/config.worktree", i) },
		"directories":    func(i int) string { return fmt.Sprintf("modules/%d/%d/x", i%8, i) },
		"depth":          func(int) string { return "modules/1/2/3/4/5/6/7/8/x" },
	} {
		tree := with(repository(gitProject+"/.git"), repository(gitProject+"/.git/modules/real"), map[string]string{
			gitProject + "/.git/worktrees/w/gitdir": "/w/.git\n",
		})
		for i := range maxGitDirs + 1 {
			tree[gitProject+"/.git/"+decoy(i)] = ""
		}
		found := Find(resolve.NewView(resolvetest.InMemory(tree)), resolve.Host{Platform: "linux", Home: "/home/u"},
			gitProject, nil)
		for _, want := range []string{".git/hooks", ".git/config", ".git/commondir", ".git/modules", ".git/worktrees"} {
			if !slices.Contains(found.Inside, gitProject+"/"+want) {
				t.Errorf("%s: %s is not protected", name, want)
			}
		}
		if !found.Crowded || len(found.Inside) != 5 {
			t.Errorf("%s: %t, %d paths", name, found.Crowded, len(found.Inside))
		}
	}
}

// The configuration of repositories is told from what it includes.
func TestFindGit_ListsConfigurations(t *testing.T) {
	t.Parallel()
	tree := with(repository(gitProject+"/.git"), repository(gitProject+"/.git/modules/m"), map[string]string{
		gitProject + "/.git/config": "[include]\npath = more\n[extensions]\nworktreeConfig\n",
		gitProject + "/.git/more":   "",
	})
	found := Find(resolve.NewView(resolvetest.InMemory(tree)), resolve.Host{}, gitProject, nil)
	dot := gitProject + "/.git/"
	want := []string{dot + "config", dot + "config.worktree", dot + "modules/m/config"}
	if !slices.Equal(found.Configs, want) || !slices.Contains(found.Inside, dot+"more") {
		t.Errorf("%q and %q, want %q", found.Configs, found.Inside, want)
	}
}
