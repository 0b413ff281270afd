package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// village is a simulated machine on which processes descend from each other.
type village struct {
	born  uint64
	alive map[int]processIdentity // by process id
	tally int                     // of the last process id used
}

func newVillage() *village { return &village{alive: map[int]processIdentity{}} }

// fork makes a child of a process; a parent of 0 is a process from elsewhere.
func (v *village) fork(parent int) int {
	v.tally++
	return v.forkAs(v.tally, parent)
}

func (v *village) forkAs(pid, parent int) int {
	v.born++
	v.alive[pid] = processIdentity{self: v.born, parent: v.alive[parent].self}
	return pid
}

func (v *village) end(pids ...int) {
	for _, pid := range pids {
		delete(v.alive, pid)
	}
}

func (v *village) identify(pid int) (processIdentity, error) {
	who, ok := v.alive[pid]
	if !ok {
		return processIdentity{}, fmt.Errorf("identify %d: %w", pid, syscall.ESRCH)
	}
	return who, nil
}

func (v *village) table() []proc.Entry {
	var table []proc.Entry
	for pid := range v.alive {
		table = append(table, proc.Entry{ID: proc.ID{PID: pid}})
	}
	return table
}

// mustBe scans once.
func (v *village) mustBe(t *testing.T, f *ancestry, want ...int) {
	t.Helper()
	members, err := f.members(v.table())
	if got := slices.Sorted(maps.Keys(members)); err != nil || !slices.Equal(got, want) {
		t.Errorf("members are %v, want %v; %v", got, want, err)
	}
}

func TestAncestry_FindsDescendantsOfEndedParents(t *testing.T) {
	t.Parallel()
	v := newVillage()
	other, leader := v.fork(0), v.fork(0)
	f := newAncestry(v.identify)
	if err := f.follow(leader); err != nil {
		t.Fatal(err)
	}
	v.fork(other)
	child := v.fork(leader)
	v.mustBe(t, f, leader, child)
	daemon := v.fork(child)
	v.end(leader, child) // init is the daemon's parent now
	v.mustBe(t, f, daemon)
	heir := v.fork(daemon)
	v.mustBe(t, f, daemon, heir)
	grandchildren := []int{v.fork(heir), v.fork(heir)}
	v.end(daemon, heir)
	v.mustBe(t, f, grandchildren...)
}

// A number that is used again identifies another process.
func TestAncestry_DoesNotConfuseReusedNumbers(t *testing.T) {
	t.Parallel()
	v := newVillage()
	other, leader := v.fork(0), v.fork(0)
	f := newAncestry(v.identify)
	if err := f.follow(leader); err != nil {
		t.Fatal(err)
	}
	v.mustBe(t, f, leader)
	v.end(leader)
	v.forkAs(leader, other)
	v.mustBe(t, f)
	v.mustBe(t, f)
}

// The known members are those that the last scans have seen: a session may
// start millions of processes.
func TestAncestry_ForgetsTheDead(t *testing.T) {
	t.Parallel()
	v := newVillage()
	leader := v.fork(0)
	f := newAncestry(v.identify)
	if err := f.follow(leader); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		child := v.fork(leader)
		v.mustBe(t, f, leader, child)
		v.end(child)
	}
	if len(f.known) > forgetAfter+2 {
		t.Errorf("%d are remembered", len(f.known))
	}
	// A child that is in no table during one scan, because its fork is under
	// way, is found by the next, although its parent has ended.
	parent := v.fork(leader)
	v.mustBe(t, f, leader, parent)
	late := v.fork(parent)
	hidden := v.alive[late]
	v.end(parent, late)
	v.mustBe(t, f, leader)
	v.alive[late] = hidden
	v.mustBe(t, f, leader, late)
}

func TestAncestry_NotesEachMemberOnceBeforeItCounts(t *testing.T) {
	t.Parallel()
	v := newVillage()
	leader := v.fork(0)
	var noted []uint64
	f := newAncestry(v.identify)
	f.note = func(ids []uint64) error { noted = append(noted, ids...); return nil }
	if err := f.follow(leader); err != nil {
		t.Fatal(err)
	}
	v.fork(v.fork(leader))
	for range 3 {
		v.mustBe(t, f, 1, 2, 3)
	}
	if !slices.Equal(noted, []uint64{1, 2, 3}) {
		t.Errorf("noted %v", noted)
	}
	full := errors.New("disk is full")
	f.note = func([]uint64) error { return full }
	v.fork(leader)
	if members, err := f.members(v.table()); !errors.Is(err, full) || len(members) != 4 {
		t.Errorf("members %v, error %v", members, err)
	}
	if err := f.follow(99); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process that is not there: %v", err)
	}
}
