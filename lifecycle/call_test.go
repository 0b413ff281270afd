//go:build unix

package lifecycle

import (
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// A process in a session of its own belongs to its call also once its parent has
// ended, until it has ended itself, and so does what it has forked meanwhile.
// Processes of other calls never do.
func TestCall_FindsWhatHasLostItsParent(t *testing.T) {
	t.Parallel()
	const initPID, leader, other = 100, 101, 110
	entry := func(pid, parent, session int) proc.Entry {
		return proc.Entry{ID: proc.ID{PID: pid}, Parent: parent, Session: session}
	}
	ofOthers := []proc.Entry{
		entry(initPID, 1, initPID), entry(other, initPID, other), entry(111, initPID, 111), entry(112, 1, 103),
	}
	dead := entry(104, initPID, 103)
	dead.Dead = true
	members := Call{Leader: leader, Init: initPID}.members()
	for i, step := range []struct {
		table []proc.Entry
		want  []int
	}{
		{
			[]proc.Entry{entry(leader, initPID, leader), entry(102, leader, leader), entry(103, leader, 103)},
			[]int{101, 102, 103},
		},
		{[]proc.Entry{entry(103, initPID, 103), entry(104, 103, 103)}, []int{103, 104}},
		{[]proc.Entry{entry(104, initPID, 103), entry(105, 104, 105)}, []int{104, 105}},
		{[]proc.Entry{dead, entry(105, initPID, 105)}, []int{105}},
		{nil, nil},
	} {
		var got []int
		for _, id := range members.living(append(slices.Clone(ofOthers), step.table...)) {
			got = append(got, id.PID)
		}
		slices.Sort(got)
		if !slices.Equal(got, step.want) {
			t.Errorf("step %d: found %v, want %v", i, got, step.want)
		}
	}
}
