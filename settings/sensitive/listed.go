package sensitive

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// enough is how many places a directory must have, so that it is listed and not
// asked about each.
const enough = 16

// listed are the directories of many places, such as a home directory: nearly all
// the places are not there, and a list says so at once. It is no good for several
// goroutines.
type listed struct {
	places map[string]int             // by the directory, as the table has it
	names  map[string]map[string]bool // by the real directory, in lower case; nil: ask about each
}

func newListed(table []risks.Place) *listed {
	l := &listed{places: map[string]int{}, names: map[string]map[string]bool{}}
	for i := range table {
		l.places[filepath.Dir(table[i].Path)]++
	}
	return l
}

// realPath is where a place leads, whether that exists, and the symlinks on the way.
// Most have none, and few directories hold them all. A pattern stays one.
func (l *listed) realPath(r *resolve.View, path string) (at string, exists bool, links []resolve.Link) {
	dir, name := filepath.Split(path)
	dir = dir[:max(1, len(dir)-1)]
	above := r.Resolve(dir)
	at = strings.TrimSuffix(above.Path, "/") + "/" + name
	if above.Err == nil && !above.Exists || l.places[dir] >= enough && l.absent(r, above.Path, name) {
		return at, false, above.Links
	}
	entry := r.Entry(at)
	if above.Err != nil || entry.Mode&fs.ModeSymlink != 0 {
		target := r.Resolve(path)
		return target.Path, target.Exists, target.Links
	}
	return at, entry.Err == nil, above.Links
}

// absent reports whether a real directory has no such name, in lower or upper case:
// some file systems take the two for the same.
func (l *listed) absent(r *resolve.View, dir, name string) bool {
	names, known := l.names[dir]
	if !known {
		if list, err := r.FS.ReadDir(dir); err == nil && len(list) < resolve.MaxNames {
			names = map[string]bool{}
			for _, one := range list {
				names[strings.ToLower(one)] = true
			}
		}
		l.names[dir] = names
	}
	return names != nil && !names[strings.ToLower(name)]
}
