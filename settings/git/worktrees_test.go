package git

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// linked registers a working tree, and makes it.
func linked(repository, name, tree string) map[string]string {
	own := repository + "/worktrees/" + name
	return map[string]string{
		own + "/gitdir": tree + "/.git\n", own + "/commondir": "../..\n", own + "/HEAD": "ref: refs/heads/x\n",
		tree + "/.git": "gitdir: " + own + "\n",
	}
}

// crowd are more directories than are searched for repositories, before all others.
func crowd() map[string]string {
	tree := map[string]string{}
	for i := range 2 * maxNestedDirs {
		tree[fmt.Sprintf("%s/0/%d/", gitProject, i)] = ""
	}
	return tree
}

func findIn(tree map[string]string) Repository {
	return Find(resolve.NewView(resolvetest.InMemory(tree)), resolve.Host{Platform: "linux", Home: "/home/u"},
		gitProject, nil)
}

// What a repository has registered is protected, however deep it lies. What nothing
// names is not found there: the control.
func TestFindGit_RegisteredWorkingTreesAreFoundInACrowd(t *testing.T) {
	t.Parallel()
	const deep = gitProject + "/a/b/c/d"
	own, bare := gitProject+"/.git", gitProject+"/a/b/all/.bare"
	for _, test := range []struct {
		name string
		tree map[string]string
		want []string
	}{
		{
			"a worktree", with(repository(own), linked(own, "x", deep)),
			[]string{deep + "/.git", own + "/worktrees/x/commondir"},
		},
		{
			"a worktree whose file leads elsewhere in the project",
			with(repository(own), linked(own, "x", deep), repository(gitProject+"/a/evil"), map[string]string{
				deep + "/.git": "gitdir: ../../../evil\n",
			}),
			[]string{deep + "/.git", gitProject + "/a/evil/config", gitProject + "/a/evil/hooks"},
		},
		{
			"a worktree whose file is no pointer, or a symlink",
			with(repository(own), linked(own, "x", deep), linked(own, "y", deep+"/y"), map[string]string{
				deep + "/.git": "hello", deep + "/y/.git": "-> ../../x",
			}),
			[]string{deep + "/.git", deep + "/y/.git"},
		},
		{
			"a submodule's submodule",
			with(repository(own), repository(own+"/modules/a"), repository(own+"/modules/a/modules/b"),
				map[string]string{
					own + "/modules/a/modules/b/config": "[core]\n\tworktree = ../../../../../a/b/c/d\n",
					deep + "/.git":                      "gitdir: ../../../../.git/modules/a/modules/b\n",
				}),
			[]string{deep + "/.git", own + "/modules/a/modules/b/hooks"},
		},
		{
			"a submodule of a worktree",
			with(repository(own), linked(own, "x", deep), repository(own+"/worktrees/x/modules/m"), map[string]string{
				own + "/worktrees/x/modules/m/config": "[core]\n\tworktree = ../../../../../a/b/c/d/m\n",
				deep + "/m/.git":                      "gitdir: ../../../../../.git/worktrees/x/modules/m\n",
			}),
			[]string{
				deep + "/m/.git", own + "/worktrees/x/modules/m/hooks", own + "/worktrees/x/modules/m/config",
			},
		},
		{
			"a worktree of the repository above",
			with(repository("/home/u/.git"), linked("/home/u/.git", "x", deep)),
			[]string{deep + "/.git"},
		},
		{
			"a worktree of the repository of a project that is one itself",
			with(linkedWorktree, linked("/home/u/main/.git", "x", deep)),
			[]string{deep + "/.git", gitProject + "/.git"},
		},
	} {
		found := findIn(with(test.tree, crowd()))
		for _, want := range test.want {
			if !slices.Contains(found.Inside, want) {
				t.Errorf("%s: %s is not protected: %q", test.name, want, found.Inside)
			}
		}
		if found.Loose {
			t.Errorf("%s: it says that some are not protected", test.name)
		}
	}
	found := findIn(with(repository(own), repository(bare), crowd(), map[string]string{
		deep + "/.git": "gitdir: ../all/.bare\n",
	}))
	if slices.Contains(found.Inside, deep+"/.git") {
		t.Error("the control: it is found without a name")
	}
}

// Repositories in the project lead to working trees of theirs, and to common
// directories that a session could change.
func TestFindGit_FollowsWhatNestedFilesLeadTo(t *testing.T) {
	t.Parallel()
	const deep = gitProject + "/0/z/a/b"
	bare := gitProject + "/all/.bare"
	found := findIn(with(repository(gitProject+"/.git"), repository(bare), linked(bare, "x", deep), crowd(),
		repository("/home/u/elsewhere"), map[string]string{
			gitProject + "/all/.git":             "gitdir: ./.bare\n",
			gitProject + "/sub/.git":             "gitdir: ../meta\n",
			gitProject + "/meta/commondir":       "/home/u/elsewhere\n",
			gitProject + "/meta/HEAD":            "ref: refs/heads/x\n",
			gitProject + "/0/z/a/b/c/file":       "",
			gitProject + "/.git/worktrees/gone/": "",
		}))
	for _, want := range []string{deep + "/.git", bare + "/worktrees/x/gitdir", gitProject + "/meta/commondir"} {
		if !slices.Contains(found.Inside, want) {
			t.Errorf("%s is not protected: %q", want, found.Inside)
		}
	}
}

// Of a working tree elsewhere only its file is listed: the grants say whether it
// counts. One that is missing in the project can be made again.
func TestFindGit_ListsWorkingTreesElsewhere(t *testing.T) {
	t.Parallel()
	own := gitProject + "/.git"
	tree := with(repository(own), linked(own, "x", "/home/u/x"), linked(own, "y", gitProject+"/y"))
	delete(tree, gitProject+"/y/.git")
	found := findIn(tree)
	if !slices.Equal(found.Pointers, []string{"/home/u/x/.git"}) ||
		slices.Contains(found.Inside, gitProject+"/y/.git") {
		t.Errorf("%q, %q", found.Pointers, found.Inside)
	}
}

// A session registers working trees that sort before a real one, or entries without
// any. The real one is older, and keeps its place.
func TestFindGit_DecoysDoNotPushOutAnOlderWorkingTree(t *testing.T) {
	t.Parallel()
	const deep = gitProject + "/a/b/c/d"
	own := gitProject + "/.git"
	older := linked(own, "z", deep)
	trees, empty := with(repository(own), older), with(repository(own), older)
	for i := range 2 * maxPointers {
		maps.Copy(trees, linked(own, fmt.Sprintf("%04d", i), fmt.Sprintf("%s/0/%d/t", gitProject, i)))
	}
	for i := range maxGitDirs + 1 {
		empty[fmt.Sprintf("%s/worktrees/%04d/", own, i)] = ""
	}
	find := func(tree map[string]string, isOlder bool) Repository {
		f := resolvetest.InMemory(tree)
		f.Oldest = func(dir, file string, most int) ([]string, error) {
			return resolve.OldestBy(f.ReadDir, func(path string) (time.Time, error) {
				_, err := f.Lstat(path)
				if (path == own+"/worktrees/z/gitdir") == isOlder {
					return time.Unix(1, 0), err
				}
				return time.Unix(2, 0), err
			}, dir, file, most)
		}
		return Find(resolve.NewView(f), resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
	}
	for name, tree := range map[string]map[string]string{"trees": trees, "empty": empty} {
		found := find(tree, true)
		if !found.Loose || !slices.Contains(found.Inside, deep+"/.git") {
			t.Errorf("%s: loose %t: %q", name, found.Loose, found.Inside)
		}
	}
	if found := find(trees, false); slices.Contains(found.Inside, deep+"/.git") {
		t.Error("the control: a newer one is protected, too")
	}
}

// A project of many submodules gets one warning: the files that .gitmodules names
// are protected, whatever else is too much. Of those that it does not name some are
// not.
func TestFindGit_SubmodulesThatAreNamedAreNotLoose(t *testing.T) {
	t.Parallel()
	const most = 2*maxPointers + 1
	for name, named := range map[string]bool{"all are named": true, "none is": false} {
		tree := repository(gitProject + "/.git")
		var modules strings.Builder
		for i := range most {
			// git makes nested directories for names such as these.
			sub, module := fmt.Sprintf("libs/%d", i), fmt.Sprintf("%s/.git/modules/libs/%d", gitProject, i)
			maps.Copy(tree, repository(module))
			tree[module+"/config"] = fmt.Sprintf("[core]\n\tworktree = %s/%s\n", gitProject, sub)
			tree[gitProject+"/"+sub+"/.git"] = "gitdir: " + module + "\n"
			fmt.Fprintf(&modules, "[submodule %q]\n\tpath = %s\n", sub, sub)
		}
		if named {
			tree[gitProject+"/.gitmodules"] = modules.String()
		}
		found := findIn(tree)
		if !found.Crowded || found.Loose == named {
			t.Errorf("%s: crowded %t, loose %t", name, found.Crowded, found.Loose)
		}
		for i := range most {
			dot := fmt.Sprintf("%s/libs/%d/.git", gitProject, i)
			if named && !slices.Contains(found.Inside, dot) {
				t.Errorf("%s is not protected", dot)
			}
		}
	}
}

// The bound is no secret, and what a session makes pushes out no hooks.
func TestFindGit_RegisteredWorkingTreesAreBounded(t *testing.T) {
	t.Parallel()
	own := gitProject + "/.git"
	tree := repository(own)
	add := func(i int) {
		maps.Copy(tree, linked(own, fmt.Sprintf("%04d", i), fmt.Sprintf("%s/0/%d/t", gitProject, i)))
	}
	for i := range maxPointers {
		add(i)
	}
	if found := findIn(tree); found.Loose || found.Crowded || found.Uncounted {
		t.Errorf("at the bound: %t, %t, %t", found.Loose, found.Crowded, found.Uncounted)
	}
	add(maxPointers)
	tree["/home/u/.gitconfig"] = "[core]\n\thooksPath = .husky\n"
	found := findIn(tree)
	if !found.Loose || !slices.Contains(found.Inside, gitProject+"/.husky") {
		t.Errorf("behind the bound: %t: %q", found.Loose, found.Inside)
	}
	elsewhere := repository(own)
	for i := range maxGitDirs + 1 {
		elsewhere[fmt.Sprintf("%s/worktrees/%04d/gitdir", own, i)] = fmt.Sprintf("/home/u/%d/.git\n", i)
	}
	if found := findIn(elsewhere); !found.Loose || !found.Crowded {
		t.Errorf("too many to read: %t, %t", found.Loose, found.Crowded)
	}
}
