//go:build unix

package proc

import "iter"

// Entry is one process in the system's process table.
type Entry struct {
	ID
	Parent  int
	Session int
	// Dead is true of a zombie: it has ended, and nobody has waited for it yet.
	Dead bool
	// Stopped is true of a process that a signal has stopped.
	Stopped bool
	// Runs is true, on Linux, if a signal to stop takes effect in a moment: the
	// process executes, or waits so that a signal wakes it.
	Runs bool
}

// Descendants picks the roots out of a table, and everything that descends from
// them. A table is not read at one moment: if it misses a parent, the child is
// missed too.
func Descendants(table []Entry, root func(Entry) bool) []Entry {
	children := map[int][]Entry{}
	var found []Entry
	for _, entry := range table {
		if root(entry) {
			found = append(found, entry)
		} else {
			children[entry.Parent] = append(children[entry.Parent], entry)
		}
	}
	for i := 0; i < len(found); i++ {
		pid := found[i].PID
		found = append(found, children[pid]...)
		delete(children, pid) // a number that was reused while the table was read could cause a loop
	}
	return found
}

// Living leaves out the processes that have ended.
func Living(entries []Entry) []ID {
	var alive []ID
	for _, entry := range entries {
		if !entry.Dead {
			alive = append(alive, entry.ID)
		}
	}
	return alive
}

// LivingDescendants finds the living processes among the roots and their
// descendants.
func LivingDescendants(root func(Entry) bool) iter.Seq2[ID, error] {
	return func(yield func(ID, error) bool) {
		table, err := Table()
		if err != nil {
			yield(ID{}, err)
			return
		}
		for _, found := range Living(Descendants(table, root)) {
			if !yield(found, nil) {
				return
			}
		}
	}
}
