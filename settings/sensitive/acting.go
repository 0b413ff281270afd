package sensitive

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// ActingAt says who acts on all of what is written at a path, which is absolute
// and without symlinks: it is a place of the table, or lies in one. Names of a
// project's table count in any directory. found is false if it is no such place.
func (p *Paths) ActingAt(r *resolve.View, path string) (actor Actor, found bool) {
	if actor, found := p.within(r, path); found {
		return actor, true
	}
	if name, found := inNamed(path); found {
		return Actor{Acts: fmt.Sprintf("outside, it is for %s: %s", name.Who, name.Why)}, true
	}
	return Actor{}, false
}

// PlaceAt is ActingAt without the names of a project's table.
func (p *Paths) PlaceAt(r *resolve.View, path string) (actor Actor, found bool) {
	return p.within(r, path)
}

// ActingBelow lists the places of the table below a directory, itself not
// included, that programs outside act on, whether they exist or not: the names,
// and where symlinks lead. ways are symlinks on the way to them, to other
// directories. The last name of a path may contain *. What a variable names counts
// only if the directory holds a home directory; PATH never does, since it leads
// into projects.
func (p *Paths) ActingBelow(r *resolve.View, dir string) (list, ways []string) {
	if p.base != nil {
		return p.base.ActingBelow(r, dir)
	}
	home := slices.ContainsFunc(p.homes, func(home string) bool { return policy.Contains(dir, home) })
	below := func(path string) bool {
		return path != dir && policy.Contains(dir, path) && !slices.Contains(p.homes, path)
	}
	for i, known := range p.acting(r) {
		if known.Variable != "" && (!home || known.Variable == "PATH") {
			continue
		}
		for _, path := range []string{known.Path, p.named[i].name} {
			if below(path) {
				list = append(list, path)
			}
		}
		for _, link := range p.named[i].links {
			switch {
			case !below(link.Path):
			case r.Resolve(link.Path).Path == known.Path:
				list = append(list, link.Path)
			default:
				ways = append(ways, link.Path)
			}
		}
	}
	slices.Sort(list)
	slices.Sort(ways)
	return slices.Compact(list), slices.Compact(ways)
}

// With is what is known, and further places, because files of the user's name them
// or symlinks lead there: that somebody acts on, which [Paths.ActingAt] and
// [Paths.FindActor] know, and existing ones of secrets.
func (p *Paths) With(more []risks.Place) *Paths {
	if len(more) == 0 {
		return p
	}
	with := *p
	with.base, with.more, with.acted, with.named = p, more, nil, nil
	with.All = slices.Clone(p.All)
	for _, one := range more {
		if one.Secret != "" {
			with.All = append(with.All, place{
				Path: one.Path, Named: one.Path, Holds: one.Secret, Exists: true, Hidden: one.Hidden(),
			})
		}
	}
	return &with
}

// Anew is a copy of what is known, with the places that somebody acts on looked up
// now. Several goroutines may ask it.
func (p *Paths) Anew(r *resolve.View) *Paths {
	anew := *p
	if p.base != nil {
		anew.base = p.base.Anew(r)
	}
	anew.acted, anew.named, anew.listed = nil, nil, newListed(nil) // a denial reads no directory
	anew.acting(r)
	return &anew
}

// namedPlace is a place by its name.
type namedPlace struct {
	name   string         // in its real directory
	links  []resolve.Link // that lead from it to the place
	exists bool           // the place
}

// acting are the places of the table that somebody acts on, or those that With has
// added, by their real paths. It looks them up once. named gets their names.
func (p *Paths) acting(r *resolve.View) []risks.Place {
	if p.acted != nil {
		return p.acted
	}
	table := p.table
	if p.base != nil {
		table = p.more
	}
	p.acted = make([]risks.Place, 0, len(table))
	for _, known := range table {
		if known.Acts == "" {
			continue
		}
		dir, name := filepath.Split(known.Path)
		named := namedPlace{name: filepath.Join(r.Resolve(filepath.Clean(dir)).Path, name)}
		known.Path, named.exists, named.links = p.listed.realPath(r, known.Path)
		p.acted, p.named = append(p.acted, known), append(p.named, named)
	}
	return p.acted
}

// within finds the innermost place that a path is in.
func (p *Paths) within(r *resolve.View, path string) (actor Actor, found bool) {
	if p.base != nil {
		if actor, found := p.base.within(r, path); found {
			return actor, true
		}
	}
	return within(p.acting(r), path)
}

// actorBelow finds a place that a path holds.
func (p *Paths) actorBelow(r *resolve.View, path string) (actor Actor, found bool) {
	if p.base != nil {
		if actor, found := p.base.actorBelow(r, path); found {
			return actor, true
		}
	}
	return below(p.acting(r), path, true)
}
