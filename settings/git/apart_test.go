package git

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// What a session makes takes no room from the hooks that the repository and the user
// name, and none from the repositories that lie behind it.
func TestFindGit_DecoysPushOutNothing(t *testing.T) {
	t.Parallel()
	decoy := func(dir string, trees int) map[string]string {
		tree := repository(dir)
		for i := range trees {
			tree[fmt.Sprintf("%s/worktrees/%d/x", dir, i)] = ""
		}
		return tree
	}
	numbered := func(format string, n int) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	manyPointers := with(map[string]string{
		gitProject + "/.gitmodules": numbered("[submodule \"%[1]d\"]\n\tpath = s/%[1]d\n", 2*maxGitProtected),
	})
	for i := range 2 * maxGitProtected {
		manyPointers[fmt.Sprintf("%s/s/%d/.git", gitProject, i)] = "gitdir: x\n"
	}
	led := map[string]string{}
	for i := range maxPointers {
		maps.Copy(led, linked(gitProject+"/.git", fmt.Sprintf("%04d", i), fmt.Sprintf("%s/t/%d", gitProject, i)))
		maps.Copy(led, repository(fmt.Sprintf("%s/r/%d", gitProject, i)))
		led[fmt.Sprintf("%s/t/%d/.git", gitProject, i)] = fmt.Sprintf("gitdir: ../../r/%d\n", i)
	}
	full := map[string]string{}
	for i := range maxNested - 1 {
		maps.Copy(full, decoy(fmt.Sprintf("%s/%02d/.git", gitProject, i), 2*ofOne.dirs))
	}
	configured := func(format string, n int) map[string]string {
		dot := gitProject + "/a/.git"
		return with(repository(dot), map[string]string{dot + "/config": numbered(format, n)})
	}
	for name, decoys := range map[string]map[string]string{
		"none":                         {},
		"a repository with many trees": decoy(gitProject+"/a/.git", maxGitProtected),
		"as many such as are found":    full,
		"many pointers":                manyPointers,
		"trees that lead elsewhere":    led,
		"includes":                     configured("[include]\n\tpath = /x/%d\n", 2*maxGitConfigs),
		"hooks elsewhere":              configured("[core]\n\thooksPath = /x/%d\n", 2*maxGitProtected),
		"hooks in each tree":           configured("[core]\n\thooksPath = x%d\n", 2*maxGitProtected),
		"submodules in each other": with(repository(gitProject+"/a/.git"),
			map[string]string{gitProject + "/a/.git/modules/1/2/3/4/5/6/7/8/x": ""}),
	} {
		own := gitProject + "/.git"
		tree := with(repository(own), decoys, repository(gitProject+"/zz/.git"), map[string]string{
			own + "/config":                "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = more\n",
			gitProject + "/zz/.git/config": "[core]\n\thooksPath = own\n",
			"/home/u/.gitconfig": "[core]\n\thooksPath = users/hooks\n[include]\n\tpath = " + gitProject +
				"/included\n",
			"/home/u/.config/git/config": "[core]\n\thooksPath = " + gitProject + "/absolute\n",
		})
		found := findIn(tree)
		for _, want := range []string{
			".git/hooks", ".git/config", ".git/commondir", ".git/more", "tools/hooks", "users/hooks", "included",
			"absolute", "zz/.git/hooks", "zz/.git/config", "zz/.git/commondir", "zz/own",
		} {
			if !slices.Contains(found.Inside, gitProject+"/"+want) {
				t.Errorf("%s: %s is not protected", name, want)
			}
		}
	}
}

// One file of a session's does not make each start ask for a hundred thousand paths.
func TestFindGit_ManyHooksAreNotAllAskedFor(t *testing.T) {
	t.Parallel()
	var config strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&config, "[core]\n\thooksPath = x%d\n", i)
	}
	files := resolvetest.InMemory(with(repository(gitProject+"/.git"), repository(gitProject+"/a/.git"),
		map[string]string{gitProject + "/a/.git/config": config.String()}))
	asked, lstat := 0, files.Lstat
	files.Lstat = func(path string) (fs.FileMode, error) {
		asked++
		return lstat(path)
	}
	Find(resolve.NewView(files), resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
	if asked == 0 || asked > 1000 {
		t.Errorf("%d paths", asked)
	}
}

// Of a repository with more than is protected one by one, the search still says what
// does not answer, and lists the programs that its working trees name.
func TestFindGit_ACrowdedRepositoryIsSearchedToo(t *testing.T) {
	t.Parallel()
	const dot = gitProject + "/a/.git"
	for _, test := range []struct {
		trees   int
		crowded bool
	}{{2, false}, {2 * ofOne.protected, true}} {
		tree := with(repository(gitProject+"/.git"), repository(dot), map[string]string{
			dot + "/config": "[extensions]\n\tworktreeConfig = true\n", gitProject + "/t/0/tools/watch": "",
		})
		for i := range test.trees {
			name := fmt.Sprint(i)
			maps.Copy(tree, linked(dot, name, gitProject+"/t/"+name))
			tree[dot+"/worktrees/"+name+"/config.worktree"] = "[core]\n\tfsmonitor = tools/watch\n"
		}
		files := resolvetest.InMemory(tree)
		read, silent := files.ReadFile, dot+"/worktrees/1/config.worktree"
		files.ReadFile = func(path string) ([]byte, error) {
			if path == silent {
				return nil, fsguard.ErrNoAnswer
			}
			return read(path)
		}
		found := Find(resolve.NewView(files), resolve.Host{Platform: "linux", Home: "/home/u"}, gitProject, nil)
		if whole := slices.Contains(found.Inside, dot+"/worktrees"); whole != test.crowded {
			t.Errorf("%d trees: protected as a whole: %t", test.trees, whole)
		}
		if found.NoAnswer != silent {
			t.Errorf("%d trees: no answer from %q", test.trees, found.NoAnswer)
		}
		if found.Programs[gitProject+"/t/0/tools/watch"] != "core.fsmonitor" {
			t.Errorf("%d trees: programs: %v", test.trees, found.Programs)
		}
	}
}
