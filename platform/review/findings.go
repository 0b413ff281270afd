package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// changes are what happened to each path, and why that matters.
type changes map[string]change

type change struct {
	how Change
	reason
}

// add adds a path, unless it is known.
func (c changes) add(path string, how Change, why reason) {
	if _, known := c[path]; !known {
		c[path] = change{how, why}
	}
}

// foldRepositories removes what was created in a new repository: the repository
// stands for it.
func (c changes) foldRepositories() {
	for dir, repository := range c {
		if repository.why != whyRepository {
			continue
		}
		for path, change := range c {
			if change.how == Created && strings.HasPrefix(path, dir+"/") && change.why != whyRepository {
				delete(c, path)
			}
		}
	}
}

const (
	// maxSingles bounds the paths that are listed one by one. A session can
	// create any number.
	maxSingles = 32
	// maxOthers bounds the paths that are listed of a group.
	maxOthers = 100
)

const (
	severalSingles = "files that programs outside the sandbox act upon"
	whySeveral     = "they are not listed one by one, as they are many"
)

// findings orders the changes: single paths first, as sessions have little
// reason to change them, and one line for each group, as sessions change those
// all the time.
func (c changes) findings() []Finding {
	of := map[protected.Group][]string{}
	for path, change := range c {
		of[change.group] = append(of[change.group], path)
	}
	var list []Finding
	singles := of[""]
	slices.SortFunc(singles, nearestFirst)
	if len(singles) > maxSingles {
		list = append(list, c.several(singles[maxSingles-1:], severalSingles, whySeveral))
		singles = singles[:maxSingles-1]
	}
	for _, path := range singles {
		list = append(list, Finding{Path: path, How: c[path].how, Why: c[path].why, Total: 1})
	}
	slices.SortFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Total, b.Total), cmp.Compare(a.Path, b.Path))
	})
	for _, group := range append([]protected.Group{links}, protected.Groups...) {
		if paths := of[group]; len(paths) > 0 {
			slices.SortFunc(paths, nearestFirst)
			list = append(list, c.several(paths, string(group), cmp.Or(group.Why(), whyLinks)))
		}
	}
	return list
}

// several makes one finding of paths that are sorted.
func (c changes) several(paths []string, group, why string) Finding {
	f := Finding{Path: paths[0], How: c[paths[0]].how, Total: len(paths)}
	if len(paths) == 1 {
		f.Why = c[f.Path].why
		return f
	}
	f.Group, f.Why, f.Others = group, why, paths[1:min(len(paths), maxOthers+1)]
	if slices.ContainsFunc(paths, func(path string) bool { return c[path].how != f.How }) {
		f.How = Changed
	}
	return f
}

func nearestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), strings.Compare(a, b))
}
