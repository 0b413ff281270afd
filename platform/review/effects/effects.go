package effects

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/gitconfig"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Scope says which repositories count, and how files are compared.
type Scope struct {
	// Roots are the directories that sessions may write. What a session does in
	// its own working trees is no news; in others that share the repository it is.
	// The working tree of which a root is a directory is the session's own, too.
	Roots []string
	// Repositories are directories of repositories (gitrepository-layout(5)). What
	// is none is left out.
	Repositories []string
	// Rest are more of them. Of these nothing is recorded: if a ref or an index is
	// new, that is all that is known.
	Rest []string
	// Signature differs if the content of a file may differ.
	Signature func(fs.FileInfo) string
	// New reports whether a file has changed since the session started.
	New func(fs.FileInfo) bool
}

// Effect is what a later command of git would put in place, or run.
type Effect struct {
	Kind Kind
	// Paths are absolute: files in a working tree, or refs in a repository. There
	// is at least one.
	Paths []string
	// By says what of git it is, such as `branch "x"`. It is quoted.
	By string
}

// Kind is what an effect is.
type Kind int

const (
	// Stored: git holds content for the paths that is new there.
	Stored Kind = iota
	// Linked: git enters the repositories at the paths.
	Linked
	// Moved: these branches or files of another working tree were made, removed or
	// changed, or these tags and remote branches lead to what they did not hold.
	Moved
	// Replaced: git reads other objects in the place of some.
	Replaced
	// Unknown: these refs changed, and what they hold could not be found out.
	Unknown
	// Commands: git runs what these lists name when an operation continues.
	Commands
	// Unseen: there was no time to look at these repositories.
	Unseen
)

// State is the state of the refs when a session started.
type State struct {
	scope  Scope
	before map[string]*snapshot // by repository
	above  []string             // the working trees that roots are directories of
	// unwritten: see Unwritten.
	unwritten bool

	time     time.Duration // the most that git may take for all of them
	programs []string      // the places of git
}

// Take records the refs of the repositories. It does not ask git.
func Take(scope Scope) *State {
	s := &State{
		scope: scope, before: map[string]*snapshot{}, time: maxTime, programs: gitconfig.Programs[system],
	}
	for _, root := range scope.Roots {
		if tree := treeOf(root); tree != "" {
			s.above = append(s.above, tree)
		}
	}
	for _, repository := range scope.Repositories {
		repository = filepath.Clean(repository)
		if _, known := s.before[repository]; known {
			continue
		}
		if now := read(repository, scope, nil); now != nil {
			s.before[repository] = now
		}
	}
	return s
}

// Directories are those in which git keeps the refs and indexes that Take has read.
func (s *State) Directories() []string {
	var list []string
	for _, repository := range slices.Sorted(maps.Keys(s.before)) {
		list = append(list, s.before[repository].dirs...)
	}
	return list
}

// treeOf is the nearest directory, from a root upwards, that has a repository: the
// working tree in which git works there; "" if there is none, or if a file system
// does not answer.
func treeOf(root string) string {
	for dir := root; ; dir = filepath.Dir(dir) {
		switch _, err := fsguard.Lstat(filepath.Join(dir, ".git")); {
		case err == nil:
			return dir
		case !errors.Is(err, fs.ErrNotExist), dir == filepath.Dir(dir):
			return ""
		}
	}
}

// Unwritten says that the session has changed no file. Then files of refs that
// were not read are not looked at.
func (s *State) Unwritten() { s.unwritten = true }

// Effects returns what has changed since Take. acts says which paths of a working
// tree programs outside act upon; they are relative to its top. git is asked only
// if a ref or an index has changed.
func (s *State) Effects(acts func(tree, path string) bool) []Effect {
	list, _ := s.effects(nil, acts)
	return list
}

// Now is Effects while the session runs: of the kinds Stored, Linked and Replaced
// alone, and without what takes long in large repositories. It also returns the
// directories in which git keeps refs and indexes by now. Closing stop ends it
// early, with less. It must not be called at the same time as Unwritten.
func (s *State) Now(stop <-chan struct{}, acts func(tree, path string) bool) (list []Effect, dirs []string) {
	return s.effects(stop, acts)
}

// effects is Effects, and Now if stop is not nil.
func (s *State) effects(stop <-chan struct{}, acts func(tree, path string) bool) (list []Effect, dirs []string) {
	live := stop != nil
	end, looks := time.Now().Add(s.time), time.Now().Add(inspectTime)
	for _, repository := range slices.Sorted(maps.Keys(s.before)) {
		before := s.before[repository]
		after := read(repository, s.scope, before)
		if after == nil || stopped(stop) {
			continue
		}
		dirs = append(dirs, after.dirs...)
		crowded := false
		if (after.crowded || before.crowded) && !s.unwritten && !live {
			begun := time.Now()
			found := s.inspect(repository, after, looks)
			before, after, crowded = aligned(repository, before, after, found.fresh)
			crowded = crowded || found.more
			end = end.Add(time.Since(begun)) // git has its time whatever that takes
		}
		if before.same(after) && !crowded {
			continue
		}
		c := comparison{
			State: s, repository: repository, before: before, after: after, acts: acts, end: end, crowded: crowded,
			stop: stop,
		}
		list = append(list, c.effects()...)
	}
	if live {
		return list, dirs
	}
	var unseen []string
	for _, repository := range s.scope.Rest {
		if _, err := fsguard.Lstat(filepath.Join(repository, "HEAD")); err != nil || s.unwritten {
			continue
		}
		if time.Now().After(looks) {
			unseen = append(unseen, repository)
			continue
		}
		if found := s.inspect(repository, nil, looks); found.more || len(found.fresh) > 0 {
			list = append(list, Effect{Kind: Unknown, Paths: []string{repository}})
		}
	}
	if len(unseen) > 0 {
		list = append(list, Effect{Kind: Unseen, Paths: unseen})
	}
	return list, dirs
}

// comparison is that of one repository.
type comparison struct {
	*State
	repository    string
	before, after *snapshot
	acts          func(tree, path string) bool
	end           time.Time
	stop          <-chan struct{} // nil at the session's end
	crowded       bool            // there are more refs than are read, and some are new

	old, now map[string]string // the values of the refs
	own      []string          // the branches of the session's working trees
	tree     string
	list     []Effect
	unknown  map[string]bool // refs whose content is not known

	commits map[string]string // of the objects that refs lead to now
	new     graph
}

// change is a ref that has another value.
type change struct {
	name string
	old  string   // its first object; "" if there was none
	tips []string // new objects
}

func (c *comparison) effects() []Effect {
	c.old, c.now = c.before.values(), c.after.values()
	c.unknown = map[string]bool{}
	if c.crowded {
		c.unknown["refs"] = true
	}
	if c.before.reftable != c.after.reftable {
		c.unknown["reftable"] = true
	}
	c.place()
	changes := c.changes()
	held := c.holdings(changes)
	c.stored(held)
	c.replaced()
	if c.stop != nil {
		return c.list
	}
	c.others()
	if len(c.unknown) > 0 {
		c.add(Unknown, "", c.inRepository(slices.Sorted(maps.Keys(c.unknown))))
	}
	return c.list
}

func (c *comparison) add(kind Kind, by string, paths []string) {
	c.list = append(c.list, Effect{Kind: kind, Paths: paths, By: by})
}

func (c *comparison) inRepository(names []string) []string {
	for i, name := range names {
		names[i] = filepath.Join(c.repository, name)
	}
	return names
}

// ours reports whether a session may write the working tree of a directory with
// a HEAD, or works in a directory of it.
func (c *comparison) ours(w worktree) bool {
	tree, top := w.dir, w.dir
	switch {
	case w.dir != c.repository:
		tree = pointed(w.dir)
		top = tree
	case filepath.Base(w.dir) == ".git":
		top = filepath.Dir(w.dir)
	}
	within := func(root string) bool { return policy.Contains(root, tree) }
	return slices.Contains(c.above, top) || slices.ContainsFunc(c.scope.Roots, within)
}

// inRoots reports whether the directory with a HEAD is one that a root's .git is,
// holds or names. The search of the working tree looks at those.
func (c *comparison) inRoots(w worktree) bool {
	return slices.ContainsFunc(c.scope.Roots, func(root string) bool {
		dot := filepath.Join(root, ".git")
		if policy.Contains(dot, w.dir) {
			return true
		}
		found, _ := fsguard.ReadFile(dot, maxRef)
		named, is := strings.CutPrefix(strings.TrimSpace(string(found.Data)), "gitdir: ")
		if is && !filepath.IsAbs(named) {
			named = filepath.Join(root, named)
		}
		return is && filepath.Clean(named) == filepath.Clean(w.dir)
	})
}

// pointed is the working tree that a directory in "worktrees" belongs to.
func pointed(dir string) string {
	found, _ := fsguard.ReadFile(filepath.Join(dir, "gitdir"), maxRef)
	dot := strings.TrimSpace(string(found.Data))
	if dot != "" && !filepath.IsAbs(dot) {
		dot = filepath.Join(dir, dot)
	}
	return filepath.Dir(dot)
}

// place finds the working tree that paths are named in, and the branches of the
// session's own.
func (c *comparison) place() {
	c.tree = c.repository
	if filepath.Base(c.repository) == ".git" {
		c.tree = filepath.Dir(c.repository)
	} else if config, err := fsguard.ReadFile(c.repository+"/config", maxRef); err == nil { // of a submodule
		if trees := gitconfig.Values(string(config.Data), "core", "worktree"); len(trees) > 0 {
			if c.tree = trees[len(trees)-1]; !filepath.IsAbs(c.tree) {
				c.tree = filepath.Join(c.repository, c.tree)
			}
		}
	}
	outside := !c.ours(worktree{dir: c.repository})
	for _, s := range []*snapshot{c.before, c.after} {
		values := c.old
		if s == c.after {
			values = c.now
		}
		for _, w := range s.worktrees {
			if !c.ours(w) {
				continue
			}
			if outside && w.dir != c.repository {
				c.tree, outside = pointed(w.dir), false
			}
			c.own = append(c.own, branchOf(values, c.prefix(w)))
		}
	}
}

// prefix is what the names of a working tree's own refs begin with.
func (c *comparison) prefix(w worktree) string {
	rest, _ := filepath.Rel(c.repository, w.dir)
	if rest == "." {
		return ""
	}
	return rest + "/"
}

// changes lists the refs that have another value, in an order.
func (c *comparison) changes() []change {
	known := map[string]bool{}
	for name, text := range c.old {
		for _, id := range ids(name, text) {
			known[id] = true
		}
	}
	var list []change
	for name, text := range c.now {
		if c.old[name] == text {
			continue
		}
		one := change{name: name}
		if before := ids(name, c.old[name]); len(before) > 0 {
			one.old = before[0]
		}
		for _, id := range ids(name, text) {
			if !known[id] && !slices.Contains(one.tips, id) {
				one.tips = append(one.tips, id)
			}
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(rank(a.name), rank(b.name)), strings.Compare(a.name, b.name))
	})
	return list
}

// rank orders refs by how likely somebody uses them next.
func rank(name string) int {
	for i, prefix := range []string{"HEAD", "refs/heads/", "refs/stash", "logs/", "refs/remotes/", "refs/tags/"} {
		if strings.HasPrefix(name, prefix) {
			return i
		}
	}
	return 9
}

// named says what a ref is, in the words of git's commands.
func named(name string) string {
	if rest, ok := strings.CutPrefix(name, "worktrees/"); ok {
		worktree, rest, _ := strings.Cut(rest, "/")
		return named(rest) + " of worktree " + display.Quote(worktree)
	}
	for _, kind := range []struct{ prefix, word string }{
		{"refs/heads/", "branch "}, {"refs/tags/", "tag "}, {"refs/remotes/", "remote branch "},
	} {
		if rest, ok := strings.CutPrefix(name, kind.prefix); ok {
			return kind.word + display.Quote(rest)
		}
	}
	switch name {
	case "refs/stash", stashLog:
		return "the stash"
	case "index":
		return "the index"
	}
	return display.Quote(name)
}

// others finds what changed besides the content of refs: branches by name, and what
// other working trees have for themselves.
func (c *comparison) others() {
	var moved []string
	for _, name := range slices.Sorted(maps.Keys(union(c.old, c.now))) {
		was, is := c.old[name], c.now[name]
		switch {
		case was == is, strings.HasPrefix(name, replacing):
		case c.unknown[name]:
		case strings.HasPrefix(name, "refs/heads/"):
			if was == "" || is == "" || !slices.Contains(c.own, name) || !c.forward(was, is) {
				moved = append(moved, name)
			}
		case strings.HasPrefix(name, "refs/tags/"): // one that is made anew stays what it was
			if was != "" && is != "" {
				moved = append(moved, name)
			}
		case strings.HasPrefix(name, "refs/remotes/"): // a fetch makes, continues and removes them
			if was != "" && is != "" && !c.forward(was, is) {
				moved = append(moved, name)
			}
		case filepath.Base(name) == "HEAD" && !strings.HasPrefix(name, "refs/"):
			if !c.ours(worktree{dir: filepath.Join(c.repository, filepath.Dir(name))}) {
				moved = append(moved, name)
			}
		}
	}
	var commands []string
	before := map[string]worktree{}
	for _, w := range c.before.worktrees {
		before[w.dir] = w
	}
	for _, w := range c.after.worktrees {
		was, known := before[w.dir]
		ours := c.ours(w)
		if !ours && known && was.index != w.index {
			moved = append(moved, c.prefix(w)+"index")
		}
		if !ours && known && was.log != w.log {
			moved = append(moved, c.prefix(w)+"logs/HEAD")
		}
		for i, name := range todoFiles {
			if was.todo[i] != w.todo[i] && w.todo[i] != "" && (!ours && known || !c.inRoots(w)) {
				commands = append(commands, c.prefix(w)+name)
			}
		}
	}
	if len(moved) > 0 {
		c.add(Moved, "", c.inRepository(moved))
	}
	if len(commands) > 0 {
		c.add(Commands, "", c.inRepository(commands))
	}
}

const replacing = "refs/replace/"

// replaced finds objects in whose place git reads others.
func (c *comparison) replaced() {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(union(c.old, c.now))) {
		if strings.HasPrefix(name, replacing) && c.old[name] != c.now[name] {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		c.add(Replaced, "", c.inRepository(names))
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
