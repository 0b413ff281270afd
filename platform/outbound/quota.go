package outbound

import "sync"

// Quota bounds the connections of one session: those that are open, and of them
// those that are still being made. It bounds the rate of new names, too. Its
// methods may be called from several goroutines.
type Quota struct {
	most, pending int
	shared        bool // the sidecar has less than the session may have
	reached       func(most int, shared bool)
	names         *names

	mu            sync.Mutex // guards what follows
	open, waiting int
}

// The parts of a quota: a session has at most a quarter of its sidecar's
// connections, and a quarter of its own may wait for a host.
const (
	shareOfSidecar = 4
	shareOfPending = 4
)

// The bytes that the kernel may hold for a session's connections, in each
// direction: for one, and for all of them. The first ones are not bounded, since
// a fixed buffer makes a host that is far away slow: the kernel's own bound for
// one (tcp_rmem, 6 MB) is the most for each.
const (
	unbounded   = 16
	mostBuffer  = 256 << 10
	mostBuffers = 64 << 20
)

// NewQuota returns a quota of most connections, 0 for no limit of the session's
// own, in a sidecar that has room for so many. reached is called for each
// connection that is refused, with how many there may be. shared is true if that
// is less than the session's own limit. It must not block, and may be nil.
func NewQuota(most, sidecar int, reached func(most int, shared bool)) *Quota {
	share := max(1, sidecar/shareOfSidecar)
	shared := most == 0 || most > share
	if shared {
		most = share
	}
	return &Quota{
		most: most, shared: shared, pending: max(1, most/shareOfPending), reached: reached, names: newNames(),
	}
}

// Place is one connection's part of a quota.
type Place struct {
	quota         *Quota
	made, release func()
}

// Take takes a place for a connection that is about to be made; nil if there is
// none.
func (q *Quota) Take() *Place {
	q.mu.Lock()
	full := 0
	switch {
	case q.open >= q.most:
		full = q.most
	case q.waiting >= q.pending:
		full = q.pending
	default:
		q.open++
		q.waiting++
	}
	q.mu.Unlock()
	if full > 0 {
		if q.reached != nil {
			q.reached(full, q.shared)
		}
		return nil
	}
	p := &Place{quota: q}
	p.made = sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiting--
	})
	p.release = sync.OnceFunc(func() {
		p.made()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.open--
	})
	return p
}

// Made says that the connection was made, or was not. It waits no more.
func (p *Place) Made() { p.made() }

// Release gives the place back. Twice is once.
func (p *Place) Release() { p.release() }

// Buffer is how many bytes the kernel may hold for the connection that was taken
// last, in each direction (SO_RCVBUF, SO_SNDBUF); 0 if as many as it likes.
func (q *Quota) Buffer() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open <= unbounded {
		return 0
	}
	return min(mostBuffer, mostBuffers/q.most)
}
