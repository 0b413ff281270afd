//go:build unix

package lifecycle

import "iter"

// processEntry is what the system's table says of one process.
type processEntry struct {
	processID
	parent  int
	session int
	// dead is true of a zombie: it has ended, and nobody has waited for it yet.
	dead bool
	// stopped is true of a process that a signal has stopped.
	stopped bool
}

// ancestry picks the roots out of a table, and everything that descends from
// them. The table was not read at one moment, so it may hold a child whose
// parent it has missed, and that child is missed too.
func descendants(table []processEntry, root func(processEntry) bool) []processEntry {
	children := map[int][]processEntry{}
	var found []processEntry
	for _, entry := range table {
		if root(entry) {
			found = append(found, entry)
		} else {
			children[entry.parent] = append(children[entry.parent], entry)
		}
	}
	for i := 0; i < len(found); i++ {
		pid := found[i].pid
		found = append(found, children[pid]...)
		delete(children, pid) // a number that was given away while the table was read could lead in a circle
	}
	return found
}

// living leaves out what has ended.
func living(entries []processEntry) []processID {
	var alive []processID
	for _, entry := range entries {
		if !entry.dead {
			alive = append(alive, entry.processID)
		}
	}
	return alive
}

// lookIn finds the living among the roots and their descendants.
func lookIn(root func(processEntry) bool) iter.Seq2[processID, error] {
	return func(yield func(processID, error) bool) {
		table, err := processTable()
		if err != nil {
			yield(processID{}, err)
			return
		}
		for _, found := range living(descendants(table, root)) {
			if !yield(found, nil) {
				return
			}
		}
	}
}
