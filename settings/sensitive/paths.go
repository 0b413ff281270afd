// Package sensitive finds what gives power elsewhere, by the table of
// settings/risks: keys, tokens and passwords, and what programs outside act on.
//
// [Find] looks for the places of secrets, [Paths.FindPrivate] for files that only
// the user may read. [Paths.Holds] says what a grant would open, [FindActor] says
// who acts on what is written, and [Assignments] finds secrets in the start-up
// files of shells.
package sensitive

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Paths are the sensitive places of the user's home directories: real paths, with
// what each holds and whether it exists.
type Paths struct {
	homes []string // real
	All   []place
	// table has every place, by the path that it was found at.
	table  []risks.Place
	acted  []risks.Place // see acting
	named  []namedPlace  // of acted
	listed *listed
	// base, if it is not nil, is what With added more to.
	base *Paths
	more []risks.Place
}

type place struct {
	Path, Holds string
	// Named is its path in the table, which may lead through symlinks.
	Named  string
	Exists bool
	// Hidden: sessions do not see it in a wider grant. Moved: a variable says
	// that it is there.
	Hidden, Moved bool
	Variable      string       // that says so; "" if it is not moved
	Mixed         string       // as in risks.Place
	Format        risks.Format // as there
	// outside: it is mixed and belongs to the machine, whose directories everybody
	// reads.
	outside bool
	plain   []string // names of files without secrets, as in risks.Place
	store   bool     // as in risks.Place
}

// Find resolves the known places of keys and tokens in home directories, and for
// root those of the system. getenv reads the environment of programs outside,
// which moves some.
func Find(r *resolve.View, homes []string, root bool, getenv func(string) string) *Paths {
	found := &Paths{}
	for _, home := range homes {
		if home = r.Resolve(home).Path; !slices.Contains(found.homes, home) {
			found.homes = append(found.homes, home)
		}
	}
	found.table = risks.In(found.homes, getenv)
	found.listed = newListed(found.table)
	for _, known := range found.table {
		inHome := slices.ContainsFunc(found.homes, func(home string) bool { return policy.Contains(home, known.Path) })
		if known.Class()&risks.Secret == 0 || !inHome && !root && known.Variable == "" && known.Mixed == "" {
			continue
		}
		for _, path := range found.withParts(r, known, matching(r, known.Path)) {
			at, exists, _ := found.listed.realPath(r, path)
			found.All = append(found.All, place{
				Path: at, Named: path, Holds: known.Secret, Exists: exists, plain: known.Plain, Mixed: known.Mixed,
				Format: known.Format, outside: known.Mixed != "" && !inHome, store: known.Store,
				Moved: known.Variable != "", Variable: known.Variable,
				Hidden: known.Hidden() && (known.Variable == "" || inHome),
			})
		}
	}
	return found
}

// withParts adds the files in directories of settings that may hold secrets.
func (p *Paths) withParts(r *resolve.View, known risks.Place, paths []string) []string {
	if known.Mixed == "" || !strings.HasSuffix(known.Path, ".d") {
		return paths
	}
	for _, dir := range slices.Clone(paths) {
		at, exists, _ := p.listed.realPath(r, dir)
		if !exists || !r.Entry(at).Mode.IsDir() {
			continue
		}
		names, _ := r.FS.ReadDir(at) // what the user cannot list, sessions cannot either
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths
}

// matching lists what a path with a * in its last name stands for, of what
// exists.
func matching(r *resolve.View, path string) (list []string) {
	dir, pattern := filepath.Split(path)
	if !strings.Contains(pattern, "*") {
		return []string{path}
	}
	if dir = filepath.Clean(dir); r.Entry(dir).Err != nil {
		return nil
	}
	names, _ := r.FS.ReadDir(dir)
	for _, name := range names {
		if policy.MatchName(pattern, name) {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list
}

// MovedInto reports whether a variable says that a place is in a directory. What
// somebody keeps in a project is meant for it.
func (p *Paths) MovedInto(dir, path string) bool {
	return policy.Contains(dir, path) && slices.ContainsFunc(p.All, func(known place) bool {
		return known.Moved && known.Path == path
	})
}

// Holds says what a grant of path opens to sessions at most; "" if nothing known
// matters. Places below path count only if they exist. A grant of ~/.ssh is one
// of keys even before there are any.
func (p *Paths) Holds(path string) string {
	return p.holds(path, func(place) bool { return true })
}

// Opens is Holds in two parts: what a grant of path opens for certain, and the
// places below it that it opens only where nothing can be hidden.
func (p *Paths) Opens(path string, hidden func(path string) bool) (shown, covered string) {
	shown = p.holds(path, func(known place) bool { return !hidden(known.Path) })
	return shown, p.below(path, "", func(known place) bool { return hidden(known.Path) })
}

// holds is Holds with only those places below path that count.
func (p *Paths) holds(path string, counts func(place) bool) string {
	switch {
	case slices.Contains(p.homes, path):
		return "your home directory" + p.below(path, ", with ", counts)
	case slices.ContainsFunc(p.homes, func(home string) bool { return policy.Contains(path, home) }):
		return "your home directory and much more" + p.below(path, ", with ", counts)
	}
	for _, known := range p.All {
		if policy.Contains(known.Path, path) && !known.isPlain(path) {
			return known.Holds
		}
	}
	return p.below(path, "", counts)
}

// isPlain reports whether a file below a place holds no secret, by its name.
func (p place) isPlain(path string) bool {
	return path != p.Path && slices.ContainsFunc(p.plain, func(pattern string) bool {
		matches, _ := filepath.Match(pattern, filepath.Base(path)) // a test checks the patterns
		return matches
	})
}

// below lists the existing places below path that count, after a prefix; "" if
// there are none.
func (p *Paths) below(path, prefix string, counts func(place) bool) string {
	var holds []string
	for _, known := range p.All {
		if known.Exists && !known.outside && policy.Contains(path, known.Path) && counts(known) &&
			!slices.Contains(holds, known.Holds) {
			holds = append(holds, known.Holds)
		}
	}
	const most = 3
	if len(holds) > most {
		holds = append(holds[:most], "more")
	}
	last := len(holds) - 1
	switch last {
	case -1:
		return ""
	case 0:
		return prefix + holds[0]
	}
	return prefix + strings.Join(holds[:last], ", ") + " and " + holds[last]
}
