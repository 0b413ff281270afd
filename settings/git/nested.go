package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// The bounds of the search for repositories in the project, which every start
// waits for.
const (
	maxNestedDirs = 64
	maxNested     = 32
)

// nested protects the repositories in the project's subdirectories: those that
// the index names, and then the nearest. A session can make others, which the
// review finds.
func (g *finder) nested() {
	found := map[string]bool{}
	add := func(dir string) (is bool) {
		dot := filepath.Join(dir, ".git")
		switch {
		case found[dot] || g.pointers[dot] || g.kind(dot)&fs.ModeIrregular != 0:
			return true
		case len(found) >= maxNested:
			g.found.Uncounted = true
			return true
		}
		if is = g.nestedRepository(dot); is {
			found[dot] = true
		}
		return is
	}
	if g.repositories != "" {
		config := g.raw(filepath.Join(g.repositories, "config"))
		wide := slices.Contains(gitconfig.Values(config, "extensions", "objectformat"), "sha256")
		for _, dir := range gitlinks([]byte(g.raw(g.index)), wide, maxGitDirs) {
			path := filepath.Join(g.project, dir)
			if filepath.IsLocal(dir) && g.view.Resolve(path).Path == path { // git follows no symlink there
				if !add(path) {
					g.found.Unlinked = append(g.found.Unlinked, path)
				}
			}
		}
	}
	queue := []string{g.project}
	for searched := 0; len(queue) > 0 && !g.found.Uncounted; searched++ {
		if searched == maxNestedDirs {
			g.found.Unsearched = true
			break
		}
		dir := queue[0]
		queue = queue[1:]
		names, err := g.view.FS.Dirs(dir)
		switch {
		case errors.Is(err, resolve.ErrNotAllFound):
			g.found.Unsearched = true
		case err != nil:
			continue // the project's own was read before, or does not answer
		}
		for _, name := range names {
			switch name {
			case ".git":
				if dir != g.project {
					add(dir)
				}
			case "node_modules":
			default:
				queue = append(queue, filepath.Join(dir, name))
			}
		}
	}
}

// nestedRepository protects a repository, or the file that leads to one. It
// returns false if there is none.
func (g *finder) nestedRepository(dot string) bool {
	switch mode := g.kind(dot); {
	case mode.IsDir():
		if !g.kind(filepath.Join(dot, "HEAD")).IsRegular() {
			return false
		}
		g.apart(dot, func(one *finder) {
			one.tree(filepath.Dir(dot))
			one.worktrees(dot)
			one.modules(filepath.Join(dot, "modules"), maxModuleDepth)
		})
	case mode.IsRegular():
		own, common, ok := g.pointed(dot)
		if !ok {
			return false
		}
		g.tree(filepath.Dir(dot))
		g.protect(dot)
		g.leads(own, common)
	default:
		return false
	}
	return true
}
