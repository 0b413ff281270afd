package review

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review/effects"
)

const (
	// maxRepositories bounds the repositories whose refs are compared. Of the rest
	// it is said if they change.
	maxRepositories = 32
	// maxEffects bounds the findings about them.
	maxEffects = 32
)

// takeRefs records the refs of the repositories below the roots, which are the
// directories that the session may write, and of those that the policy protects.
// repositories are the directories that are one, and lie in no other.
func takeRefs(p *policy.Policy, roots []string, since time.Time) (refs *effects.State, repositories []string) {
	isNew := func(info fs.FileInfo) bool { return changedAt(info).After(since) }
	scope := effects.Scope{Roots: roots, Signature: signature, New: isNew}
	add := func(dir string) {
		list := &scope.Repositories
		if len(*list) >= maxRepositories {
			list = &scope.Rest
		}
		if !slices.Contains(scope.Repositories, dir) && !slices.Contains(scope.Rest, dir) {
			*list = append(*list, dir)
		}
	}
	for _, root := range roots {
		add(filepath.Join(root, ".git"))
		add(root) // a bare one
	}
	for _, one := range p.Protected {
		// Each repository's configuration is protected; see settings/git.
		if dir, name := filepath.Split(one.Path); name == "config" {
			if _, err := fsguard.Lstat(dir + "objects"); err == nil {
				add(filepath.Clean(dir))
			}
		}
	}
	for _, dir := range scope.Repositories {
		_, err := fsguard.Lstat(filepath.Join(dir, "HEAD"))
		within := func(other string) bool { return policy.Contains(other, dir) }
		if err == nil && !slices.ContainsFunc(repositories, within) {
			repositories = append(repositories, dir)
		}
	}
	return effects.Take(scope), repositories
}

// RefDirectories are those in which git keeps refs and indexes. If something in
// one has changed, Stored may find more.
func (s *State) RefDirectories() []string { return s.refs.Directories() }

// Stored returns what git would put in place, or run, by now, and sessions have
// little reason to store; see [Stored]. Each finding has one path, and what is in
// known is left out. dirs are RefDirectories as they are now. Closing stop ends it
// early. Until it has returned, Unwritten, Gone and Findings must not be called.
func (s *State) Stored(stop <-chan struct{}, known map[string]bool) (list []Finding, dirs []string) {
	groupOf := s.groups()
	reserved := func(tree, path string) bool {
		return groupOf(tree, path) == alone || s.index.Protects(filepath.Join(tree, path))
	}
	found, dirs := s.refs.Now(stop, reserved)
	for _, effect := range found {
		for _, path := range effect.Paths {
			if known[path] || len(list) == maxEffects {
				continue
			}
			effect.Paths = []string{path}
			list = append(list, finding(effect, func(string) protected.Group { return alone }))
		}
	}
	return list, dirs
}

// groups returns a function that says which group of the table a path of a working
// tree falls in; see table.
func (s *State) groups() func(tree, path string) protected.Group {
	tables := map[*State]func(path string) protected.Group{}
	return func(tree, path string) protected.Group {
		of := s.at(tree)
		if tables[of] == nil {
			tables[of] = of.table()
		}
		return tables[of](path)
	}
}

// stored returns what git would put in place, or run, from what the session has
// left in repositories.
func (s *State) stored() []Finding {
	var list []Finding
	groupOf := s.groups()
	acting := func(path string) protected.Group {
		dir := s.at(path).project
		return groupOf(dir, strings.TrimPrefix(path, dir+"/"))
	}
	all := s.refs.Effects(func(tree, path string) bool {
		full := filepath.Join(tree, path)
		return groupOf(tree, path) != "" || s.at(full).guardedAt(full)
	})
	for _, effect := range all {
		list = append(list, finding(effect, acting))
	}
	if len(list) > maxEffects {
		rest := list[maxEffects-1:]
		several := Finding{
			Path: rest[0].Path, How: Changed, Group: "repositories and branches of git", Why: whySeveral,
		}
		for _, one := range rest {
			several.Others = append(several.Others, one.Path)
			several.Total += one.Total
		}
		several.Others = several.Others[1:min(len(several.Others), maxOthers+1)]
		list = append(list[:maxEffects-1], several)
	}
	return list
}

// finding makes one of an effect. What sessions have little reason to store comes
// first.
func finding(effect effects.Effect, acting func(path string) protected.Group) Finding {
	paths := effect.Paths
	f := Finding{How: Changed, Total: len(paths)}
	switch effect.Kind {
	case effects.Stored:
		f.How, f.Group = Stored, "files"
		f.Why = "git checkout, merge or stash puts it in place: " + effect.By + holds(effect)
		slices.SortStableFunc(paths, func(a, b string) int {
			if x, y := acting(a) == alone, acting(b) == alone; x != y {
				if x {
					return -1
				}
				return 1
			}
			return nearestFirst(a, b)
		})
	case effects.Linked:
		f.How, f.Group = Stored, "repositories"
		f.Why = "git status runs programs that a repository in the repository names: " + effect.By + holds(effect)
	case effects.Moved:
		f.Group, f.Why = "branches and worktrees of git", "git push, pull and checkout go by it"
	case effects.Replaced:
		f.Group, f.Why = "objects of git", "git reads another object in the place of one"
	case effects.Commands:
		f.Group, f.Why = string(protected.Unfinished), protected.Unfinished.Why()
	case effects.Unseen:
		f.Group, f.Why = "repositories", "there was no time to inspect it: its branches and its index may have changed"
	case effects.Unknown:
		f.Group, f.Why = "refs of git", "it changed, and git did not say what it holds: see git log -p"
	}
	f.Path, f.Others = paths[0], paths[1:min(len(paths), maxOthers+1)]
	if len(paths) == 1 {
		f.Group = ""
	}
	return f
}

func holds(effect effects.Effect) string {
	if strings.Contains(effect.By, ", ") {
		return " hold it"
	}
	return " holds it"
}

// guardedAt reports whether a path, or one above it, is protected.
func (s *State) guardedAt(path string) bool {
	for ; path != "/" && path != "."; path = filepath.Dir(path) {
		if _, ok := s.reasons[path]; ok {
			return true
		}
	}
	return false
}

// alone is the group of names that are in none.
const alone protected.Group = "none"

// table returns a function that says which group of the table a path falls in, at
// any depth; "" if in none. Case does not count: the directory may ignore it.
func (s *State) table() func(path string) protected.Group {
	var names []protected.Name
	for _, x := range []index{s.everywhere, s.installed} {
		for _, list := range x.first {
			names = append(names, list...)
		}
		for _, pattern := range x.patterns {
			names = append(names, pattern.name)
		}
	}
	for i := range names {
		names[i].Path = strings.ToLower(names[i].Path)
	}
	x := newIndex(names)
	return func(path string) protected.Group {
		group := protected.Group("")
		parts := strings.Split(strings.ToLower(path), "/")
		for i, part := range parts {
			for _, name := range x.of(part) {
				if !leadsTo(strings.Split(name.Path, "/"), parts[i:]) {
					continue
				}
				if name.Group == "" {
					return alone
				}
				group = name.Group
			}
		}
		return group
	}
}

// leadsTo reports whether a name of the table is a path, or one above it.
func leadsTo(name, path []string) bool {
	if len(name) > len(path) {
		return false
	}
	for i, part := range name {
		if !policy.MatchName(part, path[i]) {
			return false
		}
	}
	return true
}
