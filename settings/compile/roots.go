package compile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/sensitive"
)

// The bounds of what is protected in grants outside of the project, which every
// start waits for.
const (
	// maxRoots bounds the directories in which names are protected.
	maxRoots = 32
	// maxLinked bounds the entries of protected directories that are looked at
	// for symlinks.
	maxLinked = 512
)

// chosenRoots are the grants outside of the project in which programs outside
// act on files, as they do in the project. See docs/design/protected-names.md.
type chosenRoots struct {
	list []policy.Root
	// dirs are the directories among them.
	dirs []string
	// from are the grants that list was made of.
	from []grant
	// expected are files that sessions have good reasons to write. They are only
	// reviewed.
	expected map[string]bool
	refusals []string
}

// rootsOf finds them. These are none: caches, directories of temporary files,
// devices, what sets of toolchains grant, and what sessions have without an
// entry of the user's. Nobody keeps projects there.
// own are the grants without the project's file, and those of a trusted one: what
// takes a grant away must take no protection away in another one.
func rootsOf(view fsView, p project, own []grant) chosenRoots {
	roots := chosenRoots{expected: map[string]bool{}}
	known := map[string]bool{}
	for _, g := range own {
		known[g.path] = known[g.path] || g.cache // a grant of just a cache shares it, as it is meant
	}
	var over []string
	for _, g := range own {
		builtIn := g.origin.File == policy.OriginBuiltIn || g.origin.File == policy.OriginSession ||
			g.origin.Key == toolchainsKey
		inProject := p.writable() && policy.Contains(p.path, g.path) // and is protected there
		if builtIn || inProject || g.private || g.cache || !g.access.Has(policy.Write) || known[g.path] ||
			view.shared(g.path) {
			continue
		}
		known[g.path] = true
		root := policy.Root{Path: g.path}
		if actor, found := view.sensitive.ActingAt(view.View, g.path); found && !view.isOpen(g.path) {
			root.Acts = actor.Acts
		}
		target := view.Resolve(g.path)
		isDir := target.Exists && target.Mode.IsDir()
		switch {
		case isDir && len(roots.dirs) == maxRoots:
			over = append(over, g.path)
			continue
		case isDir:
			roots.dirs = append(roots.dirs, g.path)
		case root.Acts == "":
			if target.Exists { // the search of all names would take too long for thousands of missing files
				root.Acts = sensitive.Reviewed(g.path)
			}
			if root.Acts == "" {
				continue
			}
			roots.expected[g.path] = true
		}
		roots.list, roots.from = append(roots.list, root), append(roots.from, g)
	}
	if len(over) > 0 {
		roots.refusals = append(roots.refusals, fmt.Sprintf(
			"more than %d directories are writable: names in %s and %d more are not protected or reviewed",
			maxRoots, display.Quote(over[0]), len(over)-1))
	}
	return roots
}

// writersOf are the paths that sessions may write, and every directory above one.
func writersOf(granted []grant) map[string]bool {
	writers := map[string]bool{}
	for _, path := range writable(granted) {
		for dir := range upwards(path) {
			if writers[dir] {
				break
			}
			writers[dir] = true
		}
	}
	return writers
}

// writable are the paths that grants let sessions write.
func writable(granted []grant) (list []string) {
	for _, g := range granted {
		if g.access.Has(policy.Write) && !g.private {
			list = append(list, g.path)
		}
	}
	return list
}

// namedOf are the paths that are not protected because a grant names them. Only
// Linux can protect what is around a narrower grant.
func namedOf(view fsView, granted []grant) map[string]bool {
	if view.host.Platform != "linux" {
		return writersOf(granted)
	}
	named := map[string]bool{}
	for _, path := range writable(granted) {
		named[path] = true
	}
	return named
}

// shared reports whether a path is one of temporary files of all programs, or
// of the kernel.
func (v fsView) shared(path string) bool {
	for _, temporary := range temporaryPaths[v.host.Platform] {
		if v.Resolve(temporary).Path == path {
			return true
		}
	}
	return slices.ContainsFunc([]string{"/dev", "/proc", "/sys"}, func(dir string) bool {
		return policy.Contains(dir, path)
	})
}

// risks are the warnings of grants that programs outside act on as a whole.
func (c chosenRoots) risks(granted cover) (list []string) {
	for i, root := range c.list {
		if root.Acts != "" && !c.expected[root.Path] && granted.at(root.Path).Has(policy.Write) {
			list = append(list, fmt.Sprintf("sessions may write %s, by %s: %s", display.Quote(root.Path),
				c.from[i].origin, root.Acts))
		}
	}
	return list
}

// builtInOutside is what is protected in the grants outside of the project: the
// names of the table in each directory, what git runs there, and the user's own
// start-up files. What the user also grants by itself is meant to be written; what
// is granted below an entry is reopened. It adds to found what the search finds
// beside.
func (c chosenRoots) builtInOutside(
	view fsView, p project, grants grantSet, without exceptions, found *chosenPaths,
) (list []policy.Protected) {
	named := namedOf(view, grants.lasting)
	add := func(entries []policy.Protected) {
		for _, one := range entries {
			// What a pattern covers is protected, whoever grants it.
			byPattern := func(other policy.Protected) bool { return other.Pattern && other.Covers(one.Path) }
			if !named[one.Path] || slices.ContainsFunc(entries, byPattern) {
				list = append(list, one)
			}
		}
	}
	for _, dir := range c.dirs {
		root := project{path: dir, git: view.git.of(view, dir)}
		if root.git.Uncounted {
			found.refusals = append(found.refusals, fmt.Sprintf(
				"too many git repositories in %s: some are not protected", display.Quote(dir)))
		}
		if root.git.Loose {
			found.refusals = append(found.refusals, fmt.Sprintf(
				"too many git worktrees or submodules of %s: the .git files of some are not protected; prune some",
				display.Quote(dir)))
		}
		if root.git.Unsearched {
			found.unsearched = append(found.unsearched, unsearchedNote(dir))
		}
		if root.git.NoAnswer != "" {
			found.refusals = append(found.refusals, fmt.Sprintf(
				"%s does not answer: what git runs there is not protected", display.Quote(root.git.NoAnswer)))
		}
		add(builtInProtected(view, root, without))
		pointers := pointersIn(view, root.git, grants.cover)
		for _, path := range slices.Concat(root.git.Elsewhere, root.git.OutsideProtected, pointers) {
			if grants.cover.at(path).Has(policy.Write) && !without.take(path) {
				one := builtIn(path)
				one.GitConfig = slices.Contains(root.git.Configs, path)
				add([]policy.Protected{one})
			}
		}
		for _, repository := range gitDirs(root, without) {
			if grants.cover.at(repository).Has(policy.Write) {
				found.gitDirs = append(found.gitDirs, repository)
			}
		}
		found.review(root.git)
		add(view.startUp(dir, without))
	}
	if p.writable() && grants.cover.at(p.path).Has(policy.Write) {
		// A cache that a symlink puts into the project is used as it is.
		add(slices.DeleteFunc(view.startUp(p.path, without), func(one policy.Protected) bool {
			holds := func(g grant) bool { return g.cache && policy.Contains(g.path, one.Path) }
			return slices.ContainsFunc(grants.lasting, holds)
		}))
	}
	if (len(c.dirs) > 0 || p.writable()) && !view.sourced().whole {
		found.refusals = append(found.refusals, fmt.Sprintf(
			"your start-up files source more than %d files: some are not protected in grants", maxSourced))
	}
	found.gitDirs = outermost(found.gitDirs)
	return list
}

// unsearchedNote tells that not all of a grant was searched for repositories. Any
// home directory is so large, so it is no warning of each session.
func unsearchedNote(dir string) Note {
	sum := sha256.Sum256([]byte(dir))
	return Note{
		Name: fmt.Sprintf("unsearched-%x", sum[:8]), // it becomes the name of a file
		Text: fmt.Sprintf("git repositories deep in %s are not protected: it is too large; grant them by themselves",
			display.Quote(dir)),
	}
}

// startUp lists the files below a directory that programs outside act on, by the
// table of settings/risks, and what shells source at their start.
func (v fsView) startUp(dir string, without exceptions) (list []policy.Protected) {
	acting, ways := v.sensitive.ActingBelow(v.View, dir)
	for _, path := range ways {
		if !without.take(path) {
			entry := builtIn(path)
			entry.Origin.Reason = onTheWay
			list = append(list, entry)
		}
	}
	for _, path := range acting {
		if without.take(path) {
			continue
		}
		entry := builtIn(path)
		entry.Pattern = strings.Contains(filepath.Base(path), "*")
		entry.Busy = v.Entry(path).Mode.IsDir() // editors and others keep what changes there, too
		list = append(list, expand(v, entry)...)
	}
	for _, one := range v.sourced().places {
		if one.path != dir && !one.open && policy.Contains(dir, one.path) && !without.take(one.path) {
			entry := builtIn(one.path)
			entry.Origin.Reason, entry.Pattern = one.reason, one.pattern
			list = append(list, expand(v, entry)...)
		}
	}
	return list
}

// followLinks adds what protected symlinks lead to, and symlinks in protected
// directories, as far as sessions may write there: programs outside act on that.
// own are the grants without an untrusted project's file: what they name, and what
// is above it, cannot be protected as a whole. The bound holds in each of tops.
// git could do nothing in gitDirs if links of others protected what is there, so
// that is only reported.
func followLinks(
	view fsView, list []policy.Protected, own []grant, tops, gitDirs []string, without exceptions,
) (more []policy.Protected, refusals []string) {
	f := linkFollower{
		view: view, granted: coverOf(own), writers: writersOf(own), gitDirs: gitDirs, without: without,
		known: map[string]bool{}, looked: map[string]int{},
	}
	for _, one := range list {
		f.known[one.Path] = true
	}
	for _, one := range list {
		switch {
		case one.Creatable, one.Origin.Reason == onTheWay:
		case one.Pattern:
			dir, name := filepath.Split(one.Path)
			if target := view.Resolve(dir); len(target.Links) > 0 {
				pattern := one
				pattern.Path = filepath.Join(target.Path, name)
				for _, entry := range expand(view, pattern) {
					f.add(one, entry)
				}
			}
		default:
			f.top = innermost(tops, one.Path)
			f.path(one, one.Path)
			f.within(one, one.Path, linkDepth)
		}
	}
	for _, top := range slices.Sorted(maps.Keys(f.looked)) {
		if f.looked[top] > maxLinked {
			f.refusals = append(f.refusals, fmt.Sprintf("too many files in protected directories in %s: symlinks "+
				"in them are not all followed", display.Quote(cmp.Or(top, "/"))))
		}
	}
	return f.more, f.refusals
}

// innermost is the directory that holds a path, and that no other which does is
// in; "" if there is none.
func innermost(dirs []string, path string) (found string) {
	for _, dir := range dirs {
		if policy.Contains(dir, path) && len(dir) > len(found) {
			found = dir
		}
	}
	return found
}

// linkDepth is how many levels of a protected directory are looked at for
// symlinks. The review looks deeper.
const linkDepth = 2

type linkFollower struct {
	view     fsView
	granted  cover
	writers  map[string]bool
	gitDirs  []string
	without  exceptions
	known    map[string]bool
	looked   map[string]int // entries, by the directory of tops that holds them
	top      string         // that of the entry in hand
	more     []policy.Protected
	refusals []string
}

// path protects what a path leads to.
func (f *linkFollower) path(of policy.Protected, path string) {
	target := f.view.Resolve(path)
	if len(target.Links) == 0 {
		return
	}
	for _, link := range target.Links {
		f.add(of, policy.Protected{Path: link.Path})
	}
	if target.Err == nil {
		f.add(of, policy.Protected{Path: target.Path})
	}
}

// within protects what symlinks in a directory lead to.
func (f *linkFollower) within(of policy.Protected, dir string, depth int) {
	if depth == 0 || f.looked[f.top] > maxLinked || !f.view.Entry(dir).Mode.IsDir() {
		return
	}
	for _, name := range f.view.names(dir) {
		if f.looked[f.top]++; f.looked[f.top] > maxLinked {
			return
		}
		path := filepath.Join(dir, name)
		switch entry := f.view.Entry(path); {
		case entry.Err != nil:
		case entry.Mode&fs.ModeSymlink != 0:
			f.path(of, path)
		case entry.Mode.IsDir():
			f.within(of, path, depth-1)
		}
	}
}

// add protects a path if sessions may write it. of is the entry that leads
// there.
func (f *linkFollower) add(of policy.Protected, one policy.Protected) {
	if f.known[one.Path] || !f.granted.at(one.Path).Has(policy.Write) || policy.Contains(of.Path, one.Path) {
		return
	}
	f.known[one.Path] = true
	if f.without.take(one.Path) {
		return
	}
	if f.writers[one.Path] {
		f.refusals = append(f.refusals, fmt.Sprintf("%s leads to %s: that cannot be protected as a whole",
			display.Quote(of.Path), display.Quote(one.Path)))
		return
	}
	if f.inRepository(of.Path, one.Path) {
		f.refusals = append(f.refusals, fmt.Sprintf(
			"%s leads to %s, in another git repository: that is not protected, and the review lists its changes",
			display.Quote(of.Path), display.Quote(one.Path)))
		return
	}
	one.Origin = builtIn(one.Path).Origin
	one.Origin.Reason = "the protected " + display.Quote(of.Path) + " leads there"
	f.more = append(f.more, one)
}

// inRepository reports whether a path is what git itself keeps in a repository, and
// the link to it lies elsewhere. What is protected there anyway is not.
func (f *linkFollower) inRepository(link, path string) bool {
	for dir := range upwards(path) {
		if f.known[dir] && dir != path {
			return false
		}
	}
	return slices.ContainsFunc(f.gitDirs, func(dir string) bool {
		return policy.Contains(dir, path) && !policy.Contains(strings.TrimSuffix(dir, "/.git"), link)
	})
}
