package lifecycle

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// giveBack removes the directories of every group that was not closed. Without
// this they would be left when the journal is removed.
func (e *recovery) giveBack() error {
	e.mu.Lock()
	shares := slices.Collect(maps.Keys(e.shares))
	e.mu.Unlock()
	failures := make([]error, len(shares))
	var removing sync.WaitGroup
	for i, b := range shares {
		removing.Go(func() { failures[i] = b.giveBack() })
	}
	removing.Wait()
	return errors.Join(failures...)
}
