package compile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// anywhere begins an entry of hidden_paths or protected_paths that names files in
// every directory of the project. See docs/design/hidden-paths.md.
const anywhere = "**/"

var errAnywhere = errors.New(`behind "**/" there must be one name, which is not **`)

// nameAnywhere is the name of an entry "**/name". is says that it is such an
// entry.
func nameAnywhere(entry string) (name string, is bool, err error) {
	name, is = strings.CutPrefix(entry, anywhere)
	none := name == "" || name == "." || name == ".."
	if is && (none || strings.ContainsAny(name, "/\x00") || strings.Contains(name, "**")) {
		err = errAnywhere
	}
	return name, is, err
}

// searches finds what the entries "**/name" of one evaluation stand for.
type searches struct {
	// together are names that are looked for in one search. A project's names
	// have a search of their own: they cannot use up what bounds the user's.
	together [][]string
	found    map[string][]string // by the root of the search, and the name
	cut      map[string]bool     // names of a search that came to a bound
}

// searchesOf prepares the searches for the entries of the layers.
func searchesOf(l layers) *searches {
	s := &searches{found: map[string][]string{}, cut: map[string]bool{}}
	for _, layer := range []*settings{&l.user, l.project} {
		if layer == nil {
			continue
		}
		var names []string
		for _, entry := range slices.Concat(layer.values.HiddenPaths, layer.values.ProtectedPaths) {
			if name, is, err := nameAnywhere(entry); is && err == nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		s.together = append(s.together, names)
	}
	return s
}

// anywhere lists what exists in the project of a name, or of a pattern with *:
// the nearest first. What lies below another of them is left out.
func (v fsView) anywhere(p project, name string) []string {
	s := v.searches
	key := func(name string) string { return filepath.Join(p.path, name) }
	if list, known := s.found[key(name)]; known {
		return list
	}
	names := []string{name}
	if i := slices.IndexFunc(s.together, func(names []string) bool { return slices.Contains(names, name) }); i >= 0 {
		names = s.together[i]
	}
	paths, err := v.Find(p.path, names)
	for _, one := range names {
		if _, known := s.found[key(one)]; known {
			continue
		}
		list, is := []string{}, map[string]bool{}
		for _, path := range paths {
			within := false
			for dir := range policy.Upwards(filepath.Dir(path)) {
				within = within || is[dir]
			}
			if !within && policy.MatchName(one, filepath.Base(path)) {
				list, is[path] = append(list, path), true
			}
		}
		s.found[key(one)], s.cut[one] = list, s.cut[one] || err != nil
	}
	return s.found[key(name)]
}

// unfound warns of names of which not all were found.
func (v fsView) unfound() []string {
	var list []string
	for name, cut := range v.searches.cut {
		if cut {
			list = append(list, fmt.Sprintf("%s: too many directories or files, or no answer: not all of them count",
				display.Quote(anywhere+name)))
		}
	}
	slices.Sort(list)
	return list
}
