package sockets

import "sync"

// cookies are the socket cookies of what a session has bound. The zero value is
// empty.
type cookies struct {
	mu    sync.Mutex // guards what follows
	set   map[uint64]struct{}
	prune int // the size at which closed sockets are removed
}

// minPruned is the least size for which listing all sockets is worthwhile.
const minPruned = 1024

func (c *cookies) has(cookie uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, there := c.set[cookie]
	return there
}

// add records a socket. A session may bind without end, so closed sockets are
// removed; the session's limits bound the open ones.
func (c *cookies) add(cookie uint64, namespace *diag) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil {
		c.set, c.prune = map[uint64]struct{}{}, minPruned
	}
	c.set[cookie] = struct{}{}
	if len(c.set) < c.prune {
		return
	}
	if all, err := namespace.list(inAnyState); err == nil {
		live := map[uint64]struct{}{cookie: {}}
		for _, s := range all {
			if _, there := c.set[s.cookie]; there {
				live[s.cookie] = struct{}{}
			}
		}
		c.set = live
	}
	c.prune = max(minPruned, 2*len(c.set))
}
