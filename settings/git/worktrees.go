package git

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// linkedTree is a working tree that a repository has registered.
type linkedTree struct {
	own  string // the directory in the repository that belongs to it alone
	tree string // where it lies; "" if own does not say
}

// registry is what a repository has registered.
type registry struct {
	trees []linkedTree
	whole bool // there are no more
}

// linkedTrees lists those of a repository, the oldest entries first: a session can
// register more, and cannot make them older. It is not whole if there are more than
// the search's bound of directories. All names of a directory are compared, and no
// session starts if these are more than resolve.MaxNames.
func (g *finder) linkedTrees(dir string) registry {
	if list, known := g.linked[dir]; known {
		return list
	}
	all := filepath.Join(dir, "worktrees")
	names, err := g.view.FS.Oldest(all, "gitdir", g.most().dirs-g.looked)
	overfull := errors.Is(err, resolve.ErrTooManyNames)
	if overfull {
		g.found.Overfull = cmp.Or(g.found.Overfull, all)
	}
	list := registry{whole: !overfull && !errors.Is(err, resolve.ErrNotAllFound)}
	if err != nil && list.whole {
		g.unanswered(all, err)
	}
	g.looked += len(names)
	g.found.Loose = g.found.Loose || !list.whole
	for _, name := range names {
		one := linkedTree{own: filepath.Join(all, name)}
		if !g.kind(one.own).IsDir() {
			continue
		}
		if dot := g.text(filepath.Join(one.own, "gitdir")); dot != "" {
			one.tree = g.target(one.own, filepath.Dir(dot))
		}
		list.trees = append(list.trees, one)
	}
	if g.linked == nil {
		g.linked = map[string]registry{}
	}
	g.linked[dir] = list
	return list
}

// registeredTrees protects the .git files of a repository's working trees.
func (g *finder) registeredTrees(dir string) {
	for _, one := range g.linkedTrees(dir).trees {
		if one.tree != "" {
			g.outermost().registered(one.tree, one.own)
		}
	}
}

// registered protects the .git file of a working tree, however deep it lies: git
// outside follows it. own is the directory that the file should lead to. A file
// that is missing is not protected, so that git can make the tree again.
func (g *finder) registered(tree, own string) {
	dot := filepath.Join(tree, ".git")
	if _, known := g.pointers[dot]; known || tree == g.project || policy.Contains(dot, g.project) {
		return
	}
	if g.pointers == nil {
		g.pointers = map[string]bool{}
	}
	g.pointers[dot] = false
	if !g.ours(dot) { // only the grants say whether a session may write it
		if len(g.found.Pointers) >= maxGitProtected {
			g.found.Loose = true
			return
		}
		g.found.Pointers = append(g.found.Pointers, dot)
		return
	}
	if mode := g.kind(dot); !mode.IsRegular() && mode&fs.ModeSymlink == 0 {
		return
	}
	if !g.protects(dot) { // its repository may lie in the project, too
		if g.held == maxPointers {
			g.found.Loose = true
			return
		}
		g.held++
		g.protect(dot)
		g.found.Loose = g.found.Loose || !g.protects(dot)
	}
	g.pointers[dot] = true
	g.tree(tree)
	if at, common, ok := g.pointed(dot); ok && at != own {
		g.leads(at, common)
	}
}

// leads protects the repository in the project that a .git file leads to. own is
// the part of it that belongs to that working tree alone.
func (g *finder) leads(own, common string) {
	if own != common && policy.Contains(g.project, own) {
		g.protect(filepath.Join(own, "commondir")) // another one would lead elsewhere
	}
	if !policy.Contains(g.project, common) || !g.isRepository(common) {
		return
	}
	configuration := func(g *finder) {
		if own != common {
			g.worktreeConfiguration(common, own)
		}
	}
	inOwn := g.repositories != "" && policy.Contains(g.repositories, common)
	switch {
	case slices.Contains(g.found.Dirs, common):
		configuration(g)
	case inOwn && policy.Contains(filepath.Join(g.repositories, "modules"), common):
		configuration(g) // the rest comes later, with all submodules
	case g.led == maxNested:
		g.found.Loose = true
	default:
		g.led++
		g.apart(common, func(one *finder) {
			configuration(one)
			if !inOwn { // what the project's own repository has comes later
				one.worktrees(common)
			}
		})
	}
}

// worktrees protects what says where worktrees are, their configuration, and the
// repositories of their submodules.
func (g *finder) worktrees(dir string) {
	list := g.linkedTrees(dir)
	if g.visited++; g.visited > g.most().dirs || !list.whole || g.found.Crowded {
		g.found.Crowded = true
	}
	g.registeredTrees(dir)
	if g.found.Crowded {
		return
	}
	for _, one := range list.trees {
		g.protect(filepath.Join(one.own, "commondir"), filepath.Join(one.own, "gitdir"))
		g.worktreeConfiguration(dir, one.own)
		if one.tree != "" {
			g.tree(one.tree)
		}
		if modules := filepath.Join(one.own, "modules"); g.kind(modules).IsDir() {
			g.modules(modules, maxModuleDepth)
		}
	}
}

// modules protects the repositories of submodules, which may lie in nested
// directories.
func (g *finder) modules(dir string, depth int) {
	if depth == 0 {
		g.found.Crowded, g.found.Loose = true, true
		return
	}
	for _, name := range g.names(dir) {
		module := filepath.Join(dir, name)
		switch {
		case !g.kind(module).IsDir():
		case g.kind(filepath.Join(module, "HEAD")).IsRegular():
			g.repository(module)
			for _, tree := range gitconfig.Values(g.raw(filepath.Join(module, "config")), "core", "worktree") {
				tree = g.target(module, tree)
				g.tree(tree)
				g.outermost().registered(tree, module)
			}
			g.worktrees(module)
			g.modules(filepath.Join(module, "modules"), depth-1)
		default:
			g.modules(module, depth-1)
		}
	}
}
