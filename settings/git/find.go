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
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
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
	// Configs are those of them, and of OutsideProtected, that are the
	// configuration of a repository itself, in the form that git changes.
	Configs []string
	// Dirs are the directories of all repositories that it protects.
	Dirs []string
	// Outside are the directories of the repository outside of the project, and
	// OutsideProtected the paths in them to protect.
	Outside, OutsideProtected []string
	// Elsewhere is the configuration, and the directories of hooks, that git
	// uses in the project and that lie neither in it nor in its repository.
	Elsewhere []string
	// Programs are the files that git runs because its configuration names them,
	// which may not exist, with the variable that does.
	Programs map[string]string
	// Unlinked are the directories in the project that the index names as
	// repositories, and that are none.
	Unlinked []string
	// Uncounted: there are more repositories in the project than are protected.
	Uncounted bool
	// Unsearched: there are more directories in the project than are searched for
	// repositories.
	Unsearched bool
	// Pointers are the .git files of registered working trees that lie neither in
	// the project nor in its repository. They may not exist.
	Pointers []string
	// Loose: there are more registered working trees than those whose .git files are
	// listed.
	Loose bool
	// Crowded: there is more than is protected one by one. The directories of
	// submodules and worktrees are protected as a whole then.
	Crowded bool
	// Overfull is the first directory of registered working trees that holds more
	// names than can be compared, so that nobody knows which are the oldest; "" if
	// there is none.
	Overfull string
	// NoAnswer is the first path of the project, or of its repository, whose
	// file system does not answer; "" if all answer. Skipped are other paths
	// that do not answer.
	NoAnswer string
	Skipped  []string
}

// Find inspects the project's repository. host says where the user's own
// configuration lies, and answer is what git says itself; nil if it was not
// asked.
func Find(r *resolve.View, host resolve.Host, project string, answer Answer) Repository {
	g := &finder{view: r, host: host, project: project, trees: []string{project}}
	dot := filepath.Join(project, ".git")
	mode, err := r.FS.Lstat(dot)
	switch {
	case err != nil:
		g.unanswered(dot, err)
		if g.isRepository(project) { // a bare one, or the .git of a working tree
			g.repository(project)
			g.repositories = project
		}
	case mode.IsRegular():
		g.found.Pointer = true
		g.protect(dot)
		own, common, ok := g.follow(dot)
		if !ok { // as "git init --separate-git-dir" makes it: nothing in the repository names the project
			own, common, ok = g.pointed(dot)
			ok = ok && common != g.project && policy.Contains(g.project, common) && g.isRepository(common)
		}
		if ok {
			g.outside(common)
			g.repository(common)
			if own != common {
				g.worktreeConfiguration(common, own)
			}
			g.repositories, g.index = common, filepath.Join(own, "index")
		}
	case mode.IsDir():
		g.repository(dot)
		g.repositories, g.index = dot, filepath.Join(dot, "index")
	case mode&fs.ModeSymlink != 0:
		// What it leads to is the repository. Outside of the project it is granted
		// to nobody: a session can write the symlink.
		target := r.Resolve(dot)
		for _, link := range target.Links {
			g.place(link.Path)
		}
		if policy.Contains(g.project, target.Path) && target.Path != g.project && target.Mode.IsDir() {
			g.repository(target.Path)
			g.repositories, g.index = target.Path, filepath.Join(target.Path, "index")
		}
	}
	// What the repository and the user name comes first: a session cannot add to
	// it, and it takes the room that it needs.
	for _, file := range userConfigurations(host) {
		g.configuration(file)
	}
	g.answered(answer)
	g.hooksOfTrees()
	// Always: what a session has made of .git need not be a repository to git.
	g.above()
	g.hooksOfTrees()
	if g.repositories != "" {
		g.registeredTrees(g.repositories)
	}
	g.nested()
	g.found.Uncounted = g.found.Uncounted || g.partly
	g.submodulePointers()
	g.hooksOfTrees()
	if g.repositories != "" {
		g.worktrees(g.repositories)
		g.modules(filepath.Join(g.repositories, "modules"), maxModuleDepth)
	}
	g.hooksOfTrees()
	if g.repositories != "" {
		g.protectWhole()
	}
	g.found.Programs = g.programs()
	return g.found
}

// wholeDirs are the directories of a repository that are protected as a whole if
// there is too much in them.
var wholeDirs = []string{"modules", "worktrees"}

// protectWhole protects the directories of submodules and worktrees instead of
// what is in them, if that is too much. Decoys must not push out what is real.
func (g *finder) protectWhole() {
	if !g.found.Crowded {
		return
	}
	for _, name := range wholeDirs {
		dir := filepath.Join(g.repositories, name)
		for _, list := range []*[]string{&g.found.Inside, &g.found.OutsideProtected} {
			*list = slices.DeleteFunc(*list, func(path string) bool { return policy.Contains(dir, path) })
		}
	}
	for _, name := range wholeDirs {
		dir := filepath.Join(g.repositories, name)
		switch {
		case !g.kind(dir).IsDir():
		case policy.Contains(g.project, dir):
			g.found.Inside = append(g.found.Inside, dir)
		default:
			g.found.OutsideProtected = append(g.found.OutsideProtected, dir)
		}
	}
}

// userConfigurations are the files outside of any repository that git reads. A
// file that a variable replaces counts, too: the user's terminal may lack the
// variable.
func userConfigurations(host resolve.Host) []string {
	files := append([]string{host.Env["GIT_CONFIG_GLOBAL"], host.Env["GIT_CONFIG_SYSTEM"]}, homeConfigurations(host)...)
	return slices.DeleteFunc(files, func(file string) bool { return !filepath.IsAbs(file) })
}

// homeConfigurations are those of them that no variable of git names.
func homeConfigurations(host resolve.Host) (files []string) {
	if config := host.Env["XDG_CONFIG_HOME"]; filepath.IsAbs(config) {
		files = append(files, filepath.Join(config, "git", "config"))
	}
	for _, home := range host.Homes() {
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config"))
	}
	files = append(files, "/etc/gitconfig", "/usr/local/etc/gitconfig")
	if host.Platform == "darwin" {
		files = append(files, "/opt/homebrew/etc/gitconfig",
			"/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig")
	}
	return files
}

type finder struct {
	view    *resolve.View
	host    resolve.Host
	project string
	// trees are the working trees in which git may run hooks: the project, the
	// one that contains it, and those of worktrees and submodules in it.
	trees    []string
	hooks    []string // relative paths of hooks, which git looks for in each
	commands []command
	counted  map[string]int // commands of each configuration file
	// repositories is the repository whose submodules and worktrees count; ""
	// if there is none.
	repositories string
	index        string // of the project's working tree
	found        Repository
	linked       map[string]registry // see linkedTrees
	looked       int                 // entries that it has read
	pointers     map[string]bool     // the .git files of registered; true if it protects one
	held         int                 // those of them in the project
	visited      int
	read         []string // configuration files
	within       *finder  // the one that has called apart; nil: none
	led          int      // repositories that .git files lead to; see leads
	partly       bool     // of one that apart has searched, not all is protected
}

// Bounds of the search: a repository that is made to be slow must not slow down
// every start of a session.
const (
	maxGitProtected = 1024
	maxGitDirs      = 1024
	maxGitConfigs   = 128
	maxHookPaths    = 64
	maxModuleDepth  = 6
	// maxPointers bounds the .git files in the project that are protected because a
	// repository has registered their working trees. It leaves most of
	// maxGitProtected to the rest.
	maxPointers = 128
)

// protect adds a path to the list of its side of the project's border.
func (g *finder) protect(paths ...string) {
	for _, path := range paths {
		list := &g.found.OutsideProtected
		if policy.Contains(g.project, path) {
			list = &g.found.Inside
		}
		switch {
		case slices.Contains(*list, path):
		case len(*list) < g.most().protected:
			*list = append(*list, path)
		default:
			g.found.Crowded = true
		}
	}
}

// protects reports whether a path is in one of these lists.
func (g *finder) protects(path string) bool {
	return slices.Contains(g.found.Inside, path) || slices.Contains(g.found.OutsideProtected, path)
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
func (g *finder) text(path string) string { return strings.TrimSpace(g.raw(path)) }

func (g *finder) raw(path string) string {
	data, err := g.view.FS.ReadFile(g.view.Resolve(path).Path)
	if err != nil {
		g.unanswered(path, err)
		return ""
	}
	return string(data)
}

// target is where a path in one of git's files leads. Relative ones start at
// dir.
func (g *finder) target(dir, path string) string {
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
	own, common, ok = g.pointed(dot)
	if !ok {
		return "", "", false
	}
	if own == common {
		// A submodule's repository says which directory it is checked out to.
		worktrees := gitconfig.Values(g.text(filepath.Join(own, "config")), "core", "worktree")
		named := len(worktrees) > 0 && g.target(own, worktrees[len(worktrees)-1]) == g.project
		return own, own, named && g.isRepository(own)
	}
	back := g.text(filepath.Join(own, "gitdir"))
	named := back != "" && filepath.Base(back) == ".git" && g.target(own, filepath.Dir(back)) == g.project
	return own, common, named && filepath.Dir(own) == filepath.Join(common, "worktrees") && g.isRepository(common)
}

// pointed reads a .git file. own and common are the same unless it is that of a
// linked worktree.
func (g *finder) pointed(dot string) (own, common string, ok bool) {
	target, ok := strings.CutPrefix(g.text(dot), "gitdir:")
	if !ok {
		return "", "", false
	}
	own = g.target(filepath.Dir(dot), strings.TrimSpace(target))
	common = own
	if shared := g.text(filepath.Join(own, "commondir")); shared != "" {
		common = g.target(own, shared)
	}
	return own, common, true
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
	g.found.Dirs = append(g.found.Dirs, dir)
	g.found.Configs = append(g.found.Configs, filepath.Join(dir, "config"))
	g.configuration(filepath.Join(dir, "config"))
	g.worktreeConfiguration(dir, dir)
}

// names lists a directory. It stops after a number of directories. The .git files
// that lead to what is not listed are unknown then. If there is too much to protect,
// it goes on: the lists decide whether a .git file is protected.
func (g *finder) names(dir string) []string {
	if g.visited++; g.visited > g.most().dirs {
		g.found.Crowded, g.found.Loose = true, g.found.Loose || g.kind(dir).IsDir()
		return nil
	}
	names, err := g.view.FS.ReadDir(dir)
	if err != nil {
		g.unanswered(dir, err)
		return nil
	}
	if len(names) > g.most().dirs {
		g.found.Crowded, g.found.Loose = true, true
		return nil
	}
	return slices.Sorted(slices.Values(names)) // the list itself is not ours
}

// hooksOfTrees protects the hooks that relative paths name.
func (g *finder) hooksOfTrees() {
	for _, tree := range g.trees {
		for _, hooks := range g.hooks {
			g.named(tree + "/" + hooks)
		}
	}
}

// tree adds a working tree in the project.
func (g *finder) tree(dir string) {
	if policy.Contains(g.project, dir) && !slices.Contains(g.trees, dir) {
		g.trees = append(g.trees, dir)
	}
}

// submodulePointers protects the .git files of the submodules that .gitmodules
// names.
func (g *finder) submodulePointers() {
	for _, dir := range gitconfig.Values(g.text(filepath.Join(g.project, ".gitmodules")), "submodule", "path") {
		dot := filepath.Join(g.project, dir, ".git")
		if filepath.IsLocal(dir) && g.kind(dot).IsRegular() {
			g.protect(dot)
			g.found.Loose = g.found.Loose || !g.protects(dot)
		}
	}
}

// worktreeConfiguration protects the configuration that is a worktree's own. A
// file that does not exist counts if git would read it.
func (g *finder) worktreeConfiguration(common, own string) {
	file := filepath.Join(own, "config.worktree")
	entries, _ := gitconfig.Parse(g.raw(filepath.Join(common, "config")), gitconfig.BlanksReplaced)
	on := slices.ContainsFunc(entries, func(e gitconfig.Entry) bool { return e.Key == "extensions.worktreeconfig" })
	if on || g.kind(file).IsRegular() {
		g.found.Configs = append(g.found.Configs, file)
		g.configuration(file)
	}
}

// above reads the configuration of the repository whose working tree contains
// the project. It may name hooks in the project, and have working trees there.
func (g *finder) above() {
	for dir := filepath.Dir(g.project); ; dir = filepath.Dir(dir) {
		dot := filepath.Join(dir, ".git")
		mode, err := g.view.FS.Lstat(dot)
		own, common, ok := dot, dot, err == nil && mode.IsDir()
		if err == nil && mode.IsRegular() { // a linked worktree, or a submodule
			own, common, ok = g.pointed(dot)
		}
		if ok {
			g.trees = append(g.trees, dir)
			g.configuration(filepath.Join(common, "config"))
			g.worktreeConfiguration(common, own)
			g.registeredTrees(common)
			return
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}
