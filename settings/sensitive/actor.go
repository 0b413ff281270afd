package sensitive

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/git"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Actor is who acts on what sessions could write.
type Actor struct {
	// Acts is a clause, such as "your shells run it when they start".
	Acts string
	// Set is the entry of "toolchains" that gives sessions what they need of the
	// place without that risk; "" if there is none.
	Set string
	// Agent is the agent whose state it is, with its sign-in; "" if it is none.
	Agent string
}

// SignIn is a clause that says what a reader of an agent's state gets.
func (a Actor) SignIn() string { return a.Agent + " keeps its sign-in there" }

// SignIn says which agent's sign-in a reader of a path gets; found is false if
// none is known. A place below the path counts if it exists.
func (p *Paths) SignIn(r *resolve.View, path string) (what string, found bool) {
	if actor, _ := within(p.table, path); actor.Agent != "" {
		return actor.SignIn(), true
	}
	for i := range p.table {
		known := &p.table[i]
		if known.Agent != "" && known.Variable == "" && policy.Contains(path, known.Path) &&
			r.Resolve(known.Path).Exists {
			what = Actor{Agent: known.Agent}.SignIn()
			return fmt.Sprintf("%s is below it, and %s", display.Quote(known.Path), what), true
		}
	}
	return "", false
}

// FindActor says who acts on what is written at a path or below it. The path is
// absolute, without symlinks. A place below the path counts if it does not exist
// yet: sessions could make it. found is false if nobody is known to act on it.
func (p *Paths) FindActor(r *resolve.View, path string) (actor Actor, found bool) {
	if actor, found := p.within(r, path); found {
		return actor, true
	}
	if name, found := named(path); found {
		return Actor{Acts: fmt.Sprintf("outside, it is for %s: %s", name.Who, name.Why)}, true
	}
	if actor, found := p.actorBelow(r, path); found {
		return actor, true
	}
	what := repository(r, path)
	if what == "" {
		what = inRepository(r, path)
	}
	if what != "" {
		return Actor{Acts: what + ", and git outside runs its hooks and what its settings name"}, true
	}
	return Actor{}, false
}

// maxBelow bounds the directories that are looked into.
const maxBelow = 1000

// repository says that a directory is a git repository or holds one; "" if it is
// none. It looks one level below: people keep repositories side by side.
func repository(r *resolve.View, dir string) string {
	if r.Resolve(filepath.Join(dir, ".git")).Exists || git.IsRepository(r, dir) {
		return "a git repository is there"
	}
	if !r.Entry(dir).Mode.IsDir() {
		return ""
	}
	names, err := r.FS.Dirs(dir)
	crowded := errors.Is(err, resolve.ErrNotAllFound)
	if err != nil && !crowded {
		return ""
	}
	for _, name := range names[:min(len(names), maxBelow)] {
		below := filepath.Join(dir, name)
		if r.Entry(filepath.Join(below, ".git")).Err == nil || git.IsRepository(r, below) {
			return fmt.Sprintf("the git repository %s is below it", display.Quote(below))
		}
	}
	switch {
	case crowded:
		return fmt.Sprintf("git repositories may be among its %d files or more", resolve.MaxNames)
	case len(names) > maxBelow:
		return fmt.Sprintf("git repositories may be among its %d directories or more", maxBelow)
	}
	return ""
}

// ofGit are the names in a repository's own directory from which git runs programs,
// or learns where else to look for them (gitrepository-layout(5)). Of a directory
// that is called ".git" the table has them; a bare one and those of submodules have
// other names.
var ofGit = []string{"hooks", "config", "config.worktree", "commondir", "worktrees"}

// inRepository says that a path is such a name, or below one; "" if it is none.
func inRepository(r *resolve.View, path string) string {
	for dir := filepath.Dir(path); dir != path; path, dir = dir, filepath.Dir(dir) {
		if slices.Contains(ofGit, filepath.Base(path)) && git.IsRepository(r, dir) {
			return "it is in the git repository " + display.Quote(dir)
		}
	}
	return ""
}

// ActorAt says who acts on what is written in a directory, as FindActor does, but
// looks nothing up: symlinks in the home directories do not count. What a variable
// says to be below the directory is left out: who keeps it there knows it.
func (p *Paths) ActorAt(dir string) (actor Actor, found bool) {
	if actor, found = within(p.table, dir); !found {
		actor, found = below(p.table, dir, false)
	}
	return actor, found
}

// within finds the innermost place that a path is in.
func within(all []risks.Place, path string) (actor Actor, found bool) {
	longest := -1
	for i := range all {
		if known := &all[i]; known.Acts != "" && len(known.Path) > longest && isIn(known.Path, path) {
			longest, found = len(known.Path), true
			actor = Actor{Acts: known.Acts, Set: known.Set, Agent: known.Agent}
		}
	}
	return actor, found
}

// isIn reports whether a path is at a place or below it. In the place's last name
// * stands for any characters.
func isIn(place, path string) bool {
	star := strings.IndexByte(place, '*')
	if star < 0 {
		return policy.Contains(place, path)
	}
	dir := filepath.Dir(place)
	if len(path) <= len(dir) || !policy.Contains(dir, path) {
		return false
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(path[len(dir):], "/"), "/")
	return policy.MatchName(filepath.Base(place), name)
}

// below finds a place that a path holds. moved says that those count that a
// variable names.
func below(all []risks.Place, path string, moved bool) (Actor, bool) {
	for i := range all {
		known := &all[i]
		if known.Acts != "" && (moved || known.Variable == "") && policy.Contains(path, known.Path) {
			return Actor{Acts: fmt.Sprintf("%s is below it, and %s", display.Quote(known.Path), known.Acts)}, true
		}
	}
	return Actor{}, false
}

// named finds the name of a project's table that a path has, or holds, in any
// directory: the project may be somebody else's. Names that sessions change for
// good reasons are left out, but for hooks and unfinished operations of git.
func named(path string) (protected.Name, bool) { return findNamed(path, true, firm) }

// inNamed finds such a name that a path has, or lies in.
func inNamed(path string) (protected.Name, bool) { return findNamed(path, false, firm) }

// Reviewed says why programs act on a file of its name, in any directory, also if
// sessions have good reasons to write it; "" if none does.
func Reviewed(path string) string {
	name, _ := findNamed(path, false, func(protected.Name) bool { return true })
	return name.Why
}

// firm reports whether sessions have little reason to write a name.
func firm(name protected.Name) bool {
	return name.Group == "" || name.Group == protected.Hooks || name.Group == protected.Unfinished
}

func findNamed(path string, holds bool, counts func(protected.Name) bool) (protected.Name, bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for _, name := range protected.Names {
		if !counts(name) {
			continue
		}
		pattern := strings.Split(name.Path, "/")
		for from := range parts {
			most := min(len(pattern), len(parts)-from)
			if (holds || most == len(pattern)) && matches(pattern[:most], parts[from:from+most]) {
				return name, true
			}
		}
	}
	return protected.Name{}, false
}

func matches(pattern, parts []string) bool {
	for i, part := range parts {
		if same, _ := filepath.Match(pattern[i], part); !same {
			return false
		}
	}
	return true
}
