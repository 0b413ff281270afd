package git

import (
	"cmp"
	"path/filepath"
	"slices"
)

// bounds are how much of each kind a search finds: paths that are protected,
// directories that are listed, files of configuration, relative paths of hooks.
type bounds struct{ protected, dirs, configs, hooks int }

var (
	ofAll = bounds{maxGitProtected, maxGitDirs, maxGitConfigs, maxHookPaths}
	// ofOne is for a repository that a session may have made. All that are searched
	// for fit into ofAll.
	ofOne = bounds{protected: 16, dirs: 64, configs: 8, hooks: 8}
)

// most are the bounds of this search.
func (g *finder) most() bounds {
	if g.within != nil {
		return ofOne
	}
	return ofAll
}

// outermost is the search that has begun apart; g itself if none has.
func (g *finder) outermost() *finder {
	if g.within != nil {
		return g.within
	}
	return g
}

// apart protects a repository in the project that a session may have made: what git
// runs commands from there, and what search finds. That takes no room from other
// repositories. If it is too much, the directories of submodules and worktrees are
// protected as a whole.
func (g *finder) apart(dir string, search func(one *finder)) {
	one := g.alone(dir)
	one.repository(dir)
	search(one)
	one.hooksOfTrees()
	if one.found.Crowded {
		crowded := one
		one = g.alone(dir)
		one.repository(dir)
		for _, name := range wholeDirs {
			if whole := filepath.Join(dir, name); g.kind(whole).IsDir() {
				one.protect(whole)
			}
		}
		one.trees = crowded.trees
		one.hooksOfTrees()
		g.partly = g.partly || one.found.Crowded
		one.learn(crowded)
	}
	g.add(one)
}

// alone returns a search in one repository, within this one.
func (g *finder) alone(dir string) *finder {
	return &finder{
		view: g.view, host: g.host, project: g.project, repositories: dir, within: g.outermost(), linked: g.linked,
		found: Repository{Outside: g.found.Outside},
	}
}

// learn takes from a search that found too much what needs no room: the commands,
// and what the search could not do.
func (g *finder) learn(crowded *finder) {
	g.commands = union(crowded.commands, g.commands)
	g.found.Skipped = union(crowded.found.Skipped, g.found.Skipped)
	g.found.NoAnswer = cmp.Or(crowded.found.NoAnswer, g.found.NoAnswer)
	g.found.Overfull = cmp.Or(crowded.found.Overfull, g.found.Overfull)
	g.found.Loose = g.found.Loose || crowded.found.Loose
	g.found.Unsearched = g.found.Unsearched || crowded.found.Unsearched
}

// union is what is in one of two lists, in their order.
func union[T comparable](list, other []T) []T {
	for _, each := range other {
		if !slices.Contains(list, each) {
			list = append(list, each)
		}
	}
	return list
}

// add takes what a search in one repository has found.
func (g *finder) add(one *finder) {
	g.protect(one.found.Inside...)
	g.protect(one.found.OutsideProtected...)
	for _, path := range one.found.Elsewhere {
		g.place(path)
	}
	for _, tree := range one.trees {
		g.tree(tree)
	}
	for i, command := range one.commands {
		if i < maxPrograms {
			g.commands = append(g.commands, command)
		}
	}
	g.found.Configs = append(g.found.Configs, one.found.Configs...)
	g.found.Dirs = append(g.found.Dirs, one.found.Dirs...)
	g.found.Skipped = append(g.found.Skipped, one.found.Skipped...)
	g.found.NoAnswer = cmp.Or(g.found.NoAnswer, one.found.NoAnswer)
	g.found.Overfull = cmp.Or(g.found.Overfull, one.found.Overfull)
	g.found.Loose = g.found.Loose || one.found.Loose
	g.found.Unsearched = g.found.Unsearched || one.found.Unsearched
}
