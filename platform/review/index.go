package review

import (
	"slices"
	"strings"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/protected"
)

// index finds the names that an entry of a directory may begin.
type index struct {
	first    map[string][]protected.Name // by the first component
	patterns []pattern                   // whose first component contains *
}

// pattern is a name with what is before its first * and behind the last one:
// most entries differ there.
type pattern struct {
	start, end string
	name       protected.Name
}

// newIndex makes an index of names.
func newIndex(names []protected.Name) index {
	x := index{first: map[string][]protected.Name{}}
	for _, name := range names {
		first, _, _ := strings.Cut(name.Path, "/")
		if from := strings.IndexByte(first, '*'); from >= 0 {
			x.patterns = append(x.patterns, pattern{first[:from], first[strings.LastIndexByte(first, '*')+1:], name})
		} else {
			x.first[first] = append(x.first[first], name)
		}
	}
	return x
}

// of returns the names whose first component an entry is.
func (x index) of(entry string) []protected.Name {
	list := x.first[entry]
	for i := range x.patterns {
		p := &x.patterns[i]
		if strings.HasPrefix(entry, p.start) && strings.HasSuffix(entry, p.end) &&
			policy.MatchName(p.name.Path, entry) {
			list = append(slices.Clip(list), p.name)
		}
	}
	return list
}
