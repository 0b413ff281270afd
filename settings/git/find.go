// Package git finds what git would run commands from in a project.
//
// [Find] lists the paths of a project's repository that must stay as they are, and
// the directories of the repository that lie outside of the project.
package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// Repository is what git runs commands from if it is called outside of the
// sandbox, and what of the repository lies outside of the project. See
// docs/design/git-repositories.md.
type Repository struct {
	// Pointer: the project's .git is a file that names the repository's
	// directory, as in a linked worktree or a submodule.
	Pointer bool
	// Inside are paths in the project to protect, beside those of every
	// project.
	Inside []string
	// Outside are the directories of the repository outside of the project, and
	// OutsideProtected the paths in them to protect.
	Outside, OutsideProtected []string
	// NoAnswer is the first path of the project, or of its repository, whose
	// file system does not answer; "" if all answer. Skipped are other paths
	// that do not answer.
	NoAnswer string
	Skipped  []string
}

// Find inspects the project's repository. home contains the user's own git
// configuration; "" if there is none.
func Find(r *resolve.View, home, project string) Repository {
	g := &finder{view: r, project: project}
	dot := filepath.Join(project, ".git")
	mode, err := r.FS.Lstat(dot)
	switch {
	case err != nil:
		g.unanswered(dot, err)
	case mode.IsRegular():
		g.found.Pointer = true
		g.protect(dot)
		if own, common, ok := g.follow(dot); ok {
			g.outside(common)
			g.repository(common)
			if own != common {
				g.configuration(filepath.Join(own, "config.worktree"))
			}
		}
	case mode.IsDir():
		g.repository(dot)
	}
	g.submodulePointers()
	if home != "" {
		g.configuration(filepath.Join(home, ".gitconfig"))
		g.configuration(filepath.Join(home, ".config", "git", "config"))
	}
	return g.found
}

type finder struct {
	view    *resolve.View
	project string
	found   Repository
	visited int
	read    []string // configuration files
}

// Bounds of the search: a repository that is made to be slow must not slow down
// every start of a session.
const (
	maxGitProtected = 512
	maxGitDirs      = 1024
	maxGitConfigs   = 32
	maxModuleDepth  = 6
)

// protect adds a path to the list of its side of the project's border.
func (g *finder) protect(paths ...string) {
	for _, path := range paths {
		list := &g.found.OutsideProtected
		if policy.Contains(g.project, path) {
			list = &g.found.Inside
		}
		if len(*list) < maxGitProtected && !slices.Contains(*list, path) {
			*list = append(*list, path)
		}
	}
}

func (g *finder) outside(dir string) {
	if !policy.Contains(g.project, dir) {
		g.found.Outside = append(g.found.Outside, dir)
	}
}

func (g *finder) kind(path string) fs.FileMode {
	mode, err := g.view.FS.Lstat(filepath.Join(g.view.Resolve(filepath.Dir(path)).Path, filepath.Base(path)))
	if err != nil {
		g.unanswered(path, err)
		return fs.ModeIrregular
	}
	return mode
}

// unanswered records a path whose file system does not answer.
func (g *finder) unanswered(path string, err error) {
	switch {
	case !errors.Is(err, fsguard.ErrNoAnswer):
	case !g.ours(path):
		g.found.Skipped = append(g.found.Skipped, path)
	case g.found.NoAnswer == "":
		g.found.NoAnswer = path
	}
}

// text is a small file's content without the line's end; "" if it cannot be
// read.
func (g *finder) text(path string) string {
	data, err := g.view.FS.ReadFile(path)
	if err != nil {
		g.unanswered(path, err)
		return ""
	}
	return strings.TrimSpace(string(data))
}

// place is where a path in one of git's files leads. Relative ones start at
// dir.
func (g *finder) place(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return g.view.Resolve(path).Path
}

// follow finds the repository that the project's .git file points to: the
// directory of this worktree alone, and the one that all worktrees share. It is
// ok only if the repository names the project, too. See
// gitrepository-layout(5).
func (g *finder) follow(dot string) (own, common string, ok bool) {
	target, ok := strings.CutPrefix(g.text(dot), "gitdir:")
	if !ok {
		return "", "", false
	}
	own = g.place(g.project, strings.TrimSpace(target))
	shared := g.text(filepath.Join(own, "commondir"))
	if shared == "" {
		// A submodule's repository says which directory it is checked out to.
		worktrees := values(g.text(filepath.Join(own, "config")), "core", "worktree")
		named := len(worktrees) > 0 && g.place(own, worktrees[len(worktrees)-1]) == g.project
		return own, own, named && g.isRepository(own)
	}
	common = g.place(own, shared)
	back := g.text(filepath.Join(own, "gitdir"))
	named := back != "" && filepath.Base(back) == ".git" && g.place(own, filepath.Dir(back)) == g.project
	return own, common, named && filepath.Dir(own) == filepath.Join(common, "worktrees") && g.isRepository(common)
}

func (g *finder) isRepository(dir string) bool {
	return g.kind(filepath.Join(dir, "HEAD")).IsRegular() && g.kind(filepath.Join(dir, "objects")).IsDir() &&
		g.kind(filepath.Join(dir, "refs")).IsDir()
}

// repository protects what git runs commands from: hooks and configuration of
// all worktrees and submodules, and the files that say where these are.
func (g *finder) repository(dir string) {
	// With a file "commondir" git would look for hooks and configuration
	// elsewhere.
	g.protect(filepath.Join(dir, "hooks"), filepath.Join(dir, "config"), filepath.Join(dir, "commondir"))
	g.configuration(filepath.Join(dir, "config"))
	g.configuration(filepath.Join(dir, "config.worktree"))
	for _, name := range g.names(filepath.Join(dir, "worktrees")) {
		worktree := filepath.Join(dir, "worktrees", name)
		if g.kind(worktree).IsDir() {
			g.protect(filepath.Join(worktree, "commondir"), filepath.Join(worktree, "gitdir"))
			g.configuration(filepath.Join(worktree, "config.worktree"))
		}
	}
	g.modules(filepath.Join(dir, "modules"), maxModuleDepth)
}

// names lists a directory. It stops after maxGitDirs directories.
func (g *finder) names(dir string) []string {
	if g.visited++; g.visited > maxGitDirs {
		return nil
	}
	names, err := g.view.FS.ReadDir(dir)
	if err != nil {
		g.unanswered(dir, err)
		return nil
	}
	slices.Sort(names)
	return names
}

// modules protects the repositories of submodules, which may lie in nested
// directories.
func (g *finder) modules(dir string, depth int) {
	if depth == 0 {
		return
	}
	for _, name := range g.names(dir) {
		module := filepath.Join(dir, name)
		switch {
		case !g.kind(module).IsDir():
		case g.kind(filepath.Join(module, "HEAD")).IsRegular():
			g.repository(module)
		default:
			g.modules(module, depth-1)
		}
	}
}

// submodulePointers protects the .git files of the submodules that .gitmodules
// names.
func (g *finder) submodulePointers() {
	for _, dir := range values(g.text(filepath.Join(g.project, ".gitmodules")), "submodule", "path") {
		dot := filepath.Join(g.project, dir, ".git")
		if filepath.IsLocal(dir) && g.kind(dot).IsRegular() {
			g.protect(dot)
		}
	}
}

// configuration protects what a configuration file makes git run or read from
// the project: hooks elsewhere, and further configuration. It protects the file
// itself if the project or the repository contains it.
func (g *finder) configuration(file string) {
	if slices.Contains(g.read, file) || len(g.read) >= maxGitConfigs || !g.kind(file).IsRegular() {
		return
	}
	g.read = append(g.read, file)
	if g.ours(file) {
		g.protect(file)
	}
	content := g.text(file)
	for _, hooks := range values(content, "core", "hookspath") {
		if path, ok := g.expand(g.project, hooks); ok && path != g.project && g.ours(path) {
			g.protect(path)
		}
	}
	for _, section := range []string{"include", "includeif"} {
		for _, included := range values(content, section, "path") {
			if path, ok := g.expand(filepath.Dir(file), included); ok {
				g.configuration(path)
			}
		}
	}
}

// ours reports whether a session may write a path because it is in the project
// or in the repository.
func (g *finder) ours(path string) bool {
	if policy.Contains(g.project, path) {
		return true
	}
	return slices.ContainsFunc(g.found.Outside, func(dir string) bool { return policy.Contains(dir, path) })
}

// expand makes a path of git's configuration absolute. One in a home directory
// is not the project's.
func (g *finder) expand(dir, path string) (string, bool) {
	if path == "" || strings.HasPrefix(path, "~") || strings.HasPrefix(path, "%(") {
		return "", false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path), true
}
