package lifecycle

import (
	"errors"
	"slices"
	"sync"
	"syscall"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// process identity is a process as the kernel tells it from every other since
// the machine was started, and whose child it is.
type processIdentity struct{ self, parent uint64 }

// ancestry is whoever descends from a process, as far as it was looked in time.
// The kernel remembers of each process who forked it, also after that one has
// ended and the process was given to another; a line is lost only where a
// process was born and had gone between two looks.
type ancestry struct {
	// identify tells who a process is; the error wraps ESRCH where it has
	// ended.
	identify func(pid int) (processIdentity, error)
	// note is called with members who were not known before, before anybody
	// relies on their being remembered. May be nil.
	note func([]uint64) error
	// lost is called with members that are no more. May be nil.
	lost func([]uint64) error
	// stop ends whoever calls members from time to time. May be nil.
	stop func()

	mu sync.Mutex // guards known
	// known holds, of each member, how many looks in a row have not seen it.
	known map[uint64]int
}

// forgetAfter is how many looks in a row a member must be missed in: it is dead
// then, and has no children that were not seen. A child is in no table while
// its fork is under way, which takes far less than so many looks.
const forgetAfter = 20

// newFamily makes one of known members.
func newAncestry(identify func(pid int) (processIdentity, error), known ...uint64) *ancestry {
	f := &ancestry{identify: identify, known: map[uint64]int{}}
	for _, id := range known {
		f.known[id] = 0
	}
	return f
}

// follow takes in a process that has no parent in the ancestry.
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

// members picks the members out of a table, and remembers them.
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
	var queue, news []uint64
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
				news = append(news, child)
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
	if len(news) > 0 && f.note != nil {
		slices.Sort(news)
		return found, f.note(news)
	}
	return found, nil
}

// close ends the looks that happen by themselves.
func (f *ancestry) close() {
	if f.stop != nil {
		f.stop()
	}
}
