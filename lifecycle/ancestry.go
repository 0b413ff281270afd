package lifecycle

import (
	"errors"
	"slices"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// processIdentity identifies a process and its parent, uniquely since the start
// of the machine.
type processIdentity struct{ self, parent uint64 }

// ancestry knows the descendants of a process. The kernel remembers the process
// that forked each process, even after the parent has ended and another has
// adopted the child. A branch is lost only if its parent was born and ended
// between two scans.
type ancestry struct {
	// identify identifies a process; the error wraps ESRCH if it has ended.
	identify func(pid int) (processIdentity, error)
	// note is called with new members, before anybody relies on their being
	// recorded. May be nil.
	note func([]uint64) error
	// lost is called with members that have ended. May be nil.
	lost func([]uint64) error
	// stop ends the periodic scans. May be nil.
	stop func()

	mu sync.Mutex // guards known
	// known holds, for each member, how many scans in a row have not seen it.
	known map[uint64]int
}

// forgetAfter is how many scans in a row must miss a member before it is
// forgotten. It is dead then, and has no child that was not seen: a child is in
// no table during its fork, which takes far less than so many scans.
const forgetAfter = 20

// newAncestry starts with known members.
func newAncestry(identify func(pid int) (processIdentity, error), known ...uint64) *ancestry {
	f := &ancestry{identify: identify, known: map[uint64]int{}}
	for _, id := range known {
		f.known[id] = 0
	}
	return f
}

// follow adds a process whose parent is not a member.
func (f *ancestry) follow(pid int) error {
	who, err := f.identify(pid)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[who.self] = 0
	if f.note != nil {
		return f.note([]uint64{who.self})
	}
	return nil
}

// members returns the members in a table, and records new ones.
func (f *ancestry) members(table []proc.Entry) (map[int]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	pids := map[uint64]int{}
	children := map[uint64][]uint64{}
	seen := map[uint64]bool{}
	for _, entry := range table {
		who, err := f.identify(entry.PID)
		if errors.Is(err, syscall.ESRCH) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pids[who.self] = entry.PID
		children[who.parent] = append(children[who.parent], who.self)
		seen[who.self] = true
	}
	var queue, added []uint64
	for id := range f.known {
		queue = append(queue, id)
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, child := range children[id] {
			if _, known := f.known[child]; !known {
				f.known[child] = 0
				queue = append(queue, child)
				added = append(added, child)
			}
		}
	}
	found := map[int]bool{}
	var gone []uint64
	for id := range f.known {
		if seen[id] {
			f.known[id] = 0
			found[pids[id]] = true
		} else if f.known[id]++; f.known[id] == forgetAfter {
			delete(f.known, id)
			gone = append(gone, id)
		}
	}
	if len(gone) > 0 && f.lost != nil {
		slices.Sort(gone)
		if err := f.lost(gone); err != nil {
			return found, err
		}
	}
	if len(added) > 0 && f.note != nil {
		slices.Sort(added)
		return found, f.note(added)
	}
	return found, nil
}

// close ends the periodic scans.
func (f *ancestry) close() {
	if f.stop != nil {
		f.stop()
	}
}
