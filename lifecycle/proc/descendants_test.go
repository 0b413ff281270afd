package proc

import (
	"slices"
	"testing"
)

func TestDescendants(t *testing.T) {
	t.Parallel()
	entry := func(pid, parent, session int) Entry {
		return Entry{ID: ID{PID: pid}, Parent: parent, Session: session}
	}
	ended := func(e Entry) Entry { e.Dead = true; return e }
	inSession5 := func(e Entry) bool { return e.Session == 5 }
	for name, test := range map[string]struct {
		table []Entry
		want  []int
	}{
		"children before and after their parents": {[]Entry{
			entry(3, 5, 3), entry(5, 1, 5), entry(4, 3, 4),
			entry(9, 1, 9),
		}, []int{5, 3, 4}},
		"nobody":                             {[]Entry{entry(1, 0, 1), entry(2, 1, 2)}, nil},
		"the dead are links but not counted": {[]Entry{ended(entry(5, 1, 5)), entry(6, 5, 6)}, []int{6}},
		"a child whose parent was missed":    {[]Entry{entry(5, 1, 5), entry(8, 7, 8)}, []int{5}},
		"a circle of numbers that were reused": {[]Entry{
			entry(5, 7, 5), entry(6, 5, 6), entry(7, 6, 7),
			entry(6, 7, 6),
		}, []int{5, 6, 7, 6}},
	} {
		var got []int
		for _, found := range Living(Descendants(test.table, inSession5)) {
			got = append(got, found.PID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
