package hosts

import (
	"cmp"
	"maps"
	"slices"
)

// Meet returns patterns that allow what both lists allow, sorted, each once.
func Meet(a, b []Pattern) []Pattern {
	met := map[Pattern]bool{}
	for _, lists := range [][2][]Pattern{{a, b}, {b, a}} {
		others := tableOf(lists[1])
		for _, p := range lists[0] {
			for set := range others.around(p) {
				p.meetPorts(set, met)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(met), func(p, q Pattern) int { return cmp.Compare(p.String(), q.String()) })
}

// Covers returns a function that reports whether one pattern of a list allows
// all that another pattern does.
func Covers(list []Pattern) func(Pattern) bool {
	t := tableOf(list)
	return func(p Pattern) bool {
		for set := range t.around(p) {
			if set[0] || p.port != 0 && set[p.port] {
				return true
			}
		}
		return false
	}
}

// around yields the sets of ports of all patterns that hold every host of p.
func (t *table) around(p Pattern) func(func(ports) bool) {
	switch {
	case p.addresses.IsValid():
		return t.ofPrefix(p.addresses)
	case !p.below:
		return t.ofName(p.name)
	}
	return func(yield func(ports) bool) {
		if set := t.below[p.name]; set != nil && !yield(set) {
			return
		}
		whole := table{below: t.below}
		whole.ofName(p.name)(yield)
	}
}

// meetPorts adds the pattern with each port that is in the set, too.
func (p Pattern) meetPorts(set ports, met map[Pattern]bool) {
	switch {
	case set.has(p.port):
		met[p] = true
	case p.port == 0:
		for port := range set {
			p.port = port
			met[p] = true
		}
	}
}
