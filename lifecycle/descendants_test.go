package lifecycle

import (
	"slices"
	"testing"
)

func TestDescendants(t *testing.T) {
	t.Parallel()
	entry := func(pid, parent, session int) processEntry {
		return processEntry{processID: processID{pid: pid}, parent: parent, session: session}
	}
	ended := func(e processEntry) processEntry { e.dead = true; return e }
	inSession5 := func(e processEntry) bool { return e.session == 5 }
	for name, test := range map[string]struct {
		table []processEntry
		want  []int
	}{
		"children before and after their parents": {[]processEntry{entry(3, 5, 3), entry(5, 1, 5), entry(4, 3, 4),
			entry(9, 1, 9)}, []int{5, 3, 4}},
		"nobody":                             {[]processEntry{entry(1, 0, 1), entry(2, 1, 2)}, nil},
		"the dead are links but not counted": {[]processEntry{ended(entry(5, 1, 5)), entry(6, 5, 6)}, []int{6}},
		"a child whose parent was missed":    {[]processEntry{entry(5, 1, 5), entry(8, 7, 8)}, []int{5}},
		"a circle of numbers that were reused": {[]processEntry{entry(5, 7, 5), entry(6, 5, 6), entry(7, 6, 7),
			entry(6, 7, 6)}, []int{5, 6, 7, 6}},
	} {
		var got []int
		for _, found := range living(descendants(test.table, inSession5)) {
			got = append(got, found.pid)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
