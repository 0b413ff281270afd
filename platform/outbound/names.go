package outbound

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// The bounds of the names that one session has asked outside. Each carries some
// bytes to whoever answers for an allowed "*.NAME".
const (
	namesPerSecond = 64
	namesAtOnce    = 512
	maxNames       = 16 << 10 // that are remembered
)

// names bounds the new names of a session. Its method may be called from several
// goroutines.
type names struct {
	rate *rate.Limiter

	mu    sync.Mutex // guards known
	known map[string]bool
}

func newNames() *names {
	return &names{rate: rate.NewLimiter(namesPerSecond, namesAtOnce), known: map[string]bool{}}
}

// Name waits until a name may be asked outside. One that was asked before need
// not wait: it tells nobody more. The error is about the context.
func (q *Quota) Name(ctx context.Context, name string) error {
	n := q.names
	n.mu.Lock()
	known := n.known[name]
	n.mu.Unlock()
	if known {
		return nil
	}
	if err := n.rate.Wait(ctx); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < maxNames {
		n.known[name] = true
	}
	return nil
}
