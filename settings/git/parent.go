package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Parent is the repository whose working tree contains a project that has none
// of its own, as a package of a monorepo.
type Parent struct {
	// Top is the root of the working tree, and Dir the repository that all its
	// worktrees share.
	Top, Dir string
	// Linked: Top has a file that names the repository, as in a linked worktree
	// or a submodule. A session that may write Top could have made that file.
	Linked bool
	// own is the part of the repository that belongs to this worktree alone.
	own string
}

// Ignored is the answer of [Asker.Refuses] about a project that git ignores in
// the repository above it. It is none of its packages, so nobody misses it.
const Ignored = "git ignores the project there"

// FindParent returns the parent of a project. It returns false if the project
// has a repository of its own, if there is none above it, or if the nearest one
// is not one for certain. Whether git uses it there is for [Asker.Refuses] to
// say.
func FindParent(r *resolve.View, project string) (Parent, bool) {
	if !errors.Is(r.Entry(filepath.Join(project, ".git")).Err, fs.ErrNotExist) || IsRepository(r, project) {
		return Parent{}, false
	}
	for top := filepath.Dir(project); ; top = filepath.Dir(top) {
		dot := filepath.Join(top, ".git")
		entry := r.Entry(dot)
		switch {
		case errors.Is(entry.Err, fs.ErrNotExist):
			if top == filepath.Dir(top) || IsRepository(r, top) {
				return Parent{}, false
			}
			continue
		case entry.Err != nil:
			return Parent{}, false
		}
		g := &finder{view: r, project: top}
		p := Parent{Top: top, Dir: dot, own: dot, Linked: entry.Mode.IsRegular()}
		ok := entry.Mode.IsDir() && g.isRepository(dot)
		if p.Linked {
			p.own, p.Dir, ok = g.follow(dot)
		}
		return p, ok && !p.contains(project)
	}
}

// IsRepository reports whether a directory looks like a repository itself. git would
// take that one.
func IsRepository(r *resolve.View, dir string) bool { return (&finder{view: r}).isRepository(dir) }

// contains reports whether the project lies in the repository itself.
func (p Parent) contains(project string) bool {
	for dir := project; dir != p.Top; dir = filepath.Dir(dir) {
		if dir == p.Dir {
			return true
		}
	}
	return false
}

// Guard lists what must stay as it is in the repository, and which of it are
// the configuration of a repository itself; see [Repository]. Crowded says that
// it is too much, so that submodules and worktrees are protected as a whole.
func (p Parent) Guard(r *resolve.View, host resolve.Host, project string, answer Answer) (
	protected, configs []string, crowded bool,
) {
	g := &finder{
		view: r, host: host, project: project, trees: []string{p.Top, project}, repositories: p.Dir,
		found: Repository{Outside: []string{p.Dir}},
	}
	g.repository(p.Dir)
	// It may choose a filter that the configuration defines, for any file.
	g.protect(filepath.Join(p.Dir, "info", "attributes"))
	if p.own != p.Dir {
		g.worktreeConfiguration(p.Dir, p.own)
	}
	for _, file := range userConfigurations(host) {
		g.configuration(file)
	}
	g.answered(answer)
	g.hooksOfTrees()
	g.worktrees(p.Dir)
	g.modules(filepath.Join(p.Dir, "modules"), maxModuleDepth)
	g.hooksOfTrees()
	g.protectWhole()
	return g.found.OutsideProtected, g.found.Configs, g.found.Crowded
}

// Holds returns those of the files below Top whose content git holds, because the
// first entry of the index for the file names just that content. A session that
// may write the index would have to know it: each start lets it guess once.
func (p Parent) Holds(r *resolve.View, files []string) []string {
	g := &finder{view: r, project: p.Top}
	index := g.raw(filepath.Join(p.own, "index"))
	config := g.raw(filepath.Join(p.Dir, "config"))
	wide := slices.Contains(gitconfig.Values(config, "extensions", "objectformat"), "sha256")
	var held []string
	left := slices.Clone(files)
	for one := range entries([]byte(index), wide) {
		path := filepath.Join(p.Top, string(one.path))
		i := slices.Index(left, path)
		if i < 0 {
			continue
		}
		left = slices.Delete(left, i, i+1)
		if !r.Entry(path).Mode.IsRegular() {
			continue
		}
		if content, err := r.FS.ReadFile(path); err == nil && isBlob(one.id, content) {
			held = append(held, path)
		}
	}
	return held
}
