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
	if actor, found := within(p.acting(r), path); found {
		return actor, true
	}
	if name, found := inNamed(path); found {
		return Actor{Acts: fmt.Sprintf("outside, it is for %s: %s", name.Who, name.Why)}, true
	}
	return Actor{}, false
}

// ActingBelow lists the places below a directory, itself not included, that
// programs outside act on, whether they exist or not: the names, and where
// symlinks lead. The last name of a path may contain *. What a variable names
// counts only if the directory holds a home directory; PATH never does, since it
// leads into projects.
func (p *Paths) ActingBelow(r *resolve.View, dir string) (list []string) {
	home := slices.ContainsFunc(p.homes, func(home string) bool { return policy.Contains(dir, home) })
	add := func(path string) {
		if path != dir && policy.Contains(dir, path) && !slices.Contains(p.homes, path) {
			list = append(list, path)
		}
	}
	for i, known := range p.acting(r) {
		if known.Variable == "" || home && known.Variable != "PATH" {
			add(known.Path)
			add(p.named[i])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Anew is a copy of what is known, with the places that somebody acts on looked up
// now. Several goroutines may ask it.
func (p *Paths) Anew(r *resolve.View) *Paths {
	anew := *p
	anew.acted, anew.named = nil, nil
	anew.acting(r)
	return &anew
}

// acting are the places that somebody acts on, by their real paths. It looks them
// up once. named gets their names in real directories.
func (p *Paths) acting(r *resolve.View) []risks.Place {
	if p.acted != nil {
		return p.acted
	}
	for _, known := range p.table {
		if known.Acts == "" {
			continue
		}
		dir, name := filepath.Split(known.Path)
		p.named = append(p.named, filepath.Join(r.Resolve(filepath.Clean(dir)).Path, name))
		known.Path, _ = realPath(r, known.Path)
		p.acted = append(p.acted, known)
	}
	return p.acted
}
