//go:build unix

package proc

import "iter"

// processEntry is what the system's table says of one process.
type Entry struct {
	ID
	Parent  int
	Session int
	// dead is true of a zombie: it has ended, and nobody has waited for it yet.
	Dead bool
	// stopped is true of a process that a signal has stopped.
	Stopped bool
}

// ancestry picks the roots out of a table, and everything that descends from
// them. The table was not read at one moment, so it may hold a child whose
// parent it has missed, and that child is missed too.
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
		delete(children, pid) // a number that was given away while the table was read could lead in a circle
	}
	return found
}

// living leaves out what has ended.
func Living(entries []Entry) []ID {
	var alive []ID
	for _, entry := range entries {
		if !entry.Dead {
			alive = append(alive, entry.ID)
		}
	}
	return alive
}

// lookIn finds the living among the roots and their descendants.
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
