package fsguard

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
)

// Names says what directories lack. It lists a directory that is asked for often
// once, so that many names that mostly do not exist cost one call and not one
// each. What it knows does not change: it is for one pass over many paths. Only
// one goroutine may use it.
type Names struct {
	asked map[string]int             // for how many names of each directory
	lists map[string]map[string]bool // nil: it says nothing
	lacks map[string]bool            // what was said of each path
}

const (
	// worthListing is how many names of a directory cost more than a list of it.
	worthListing = 8
	// maxListed bounds a list.
	maxListed = 4096
)

// NewNames returns one that knows nothing yet.
func NewNames() *Names {
	return &Names{asked: map[string]int{}, lists: map[string]map[string]bool{}, lacks: map[string]bool{}}
}

// Lacks reports whether nothing was at an absolute, clean path when its
// directory, or one above that, was listed. false says nothing: the directory may
// be unreadable, too large, on a file system that is not local, or may take a name
// in another case for the same.
func (n *Names) Lacks(path string) bool {
	if path == "/" {
		return false
	}
	if lacks, known := n.lacks[path]; known {
		return lacks
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if n.Lacks(dir) {
		n.lacks[path] = true
		return true
	}
	if n.asked[dir]++; n.asked[dir] == worthListing {
		n.lists[dir] = list(dir)
	}
	names := n.lists[dir]
	n.lacks[path] = names != nil && !names[name]
	return n.lacks[path]
}

// list returns the names in a directory; nil if they do not say what is not there.
func list(dir string) map[string]bool {
	if Kind(dir) != "" {
		return nil
	}
	entries, err := ReadDir(dir, maxListed)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]bool{}
	}
	if err != nil || len(entries) == maxListed {
		return nil
	}
	names := make(map[string]bool, len(entries))
	for _, entry := range entries {
		names[entry.Name] = true
	}
	if len(names) > 0 && !countsCase(dir, names) {
		return nil
	}
	return names
}

// countsCase reports whether a directory with some names is known to tell names
// apart by case: one that is there cannot be found in another case.
func countsCase(dir string, names map[string]bool) bool {
	for name := range names {
		other := strings.Map(func(r rune) rune {
			if unicode.IsUpper(r) {
				return unicode.ToLower(r)
			}
			return unicode.ToUpper(r)
		}, name)
		if other == name || names[other] {
			continue
		}
		_, found := Lstat(filepath.Join(dir, other))
		_, there := Lstat(filepath.Join(dir, name))
		return found != nil && there == nil
	}
	return false
}
