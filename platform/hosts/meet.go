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
			if set[0] != 0 && p.port == 0 || p.port != 0 && set.at(p.port)&p.protocols() == p.protocols() {
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

// meetPorts adds the pattern with each port that is in the set, too, and with
// what both let sessions speak there.
func (p Pattern) meetPorts(set ports, met map[Pattern]bool) {
	switch {
	case p.port != 0:
		if both := set.at(p.port) & p.protocols(); both != 0 {
			p.spoken = both.spokenAt(p.port)
			met[p] = true
		}
	case set[0] != 0:
		met[p] = true
	default:
		for port, speaks := range set {
			p.port, p.spoken = port, (speaks & usual(port)).spokenAt(port)
			met[p] = true
		}
	}
}
