//go:build unix

package lifecycle

import (
	"context"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// lingerers are groups that something has survived in.
type lingerers struct {
	mu      sync.Mutex // guards the fields below
	end     context.CancelFunc
	ctx     context.Context // made with the first group
	stopped bool
	running sync.WaitGroup
}

// lingerInterval is the pause between two attempts at the same survivors: each
// holds the signal that ends it already, and only what it may have started
// meanwhile is news.
const lingerInterval = time.Second

// Linger goes on killing a group that Kill has reported survivors of, and
// closes it once it is empty. It returns at once; nobody waits for an
// uninterruptible system call. Closing the tracker ends it, and what is left
// then stays in the journal, for the next sweep.
func (t *Tracker) Linger(group Group) {
	l := &t.lingerers
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	if l.ctx == nil {
		l.ctx, l.end = context.WithCancel(context.Background())
	}
	ctx := l.ctx
	l.running.Go(func() {
		for {
			// They were killed just now.
			if proc.Sleep(ctx, lingerInterval); ctx.Err() != nil {
				t.recovery.options.logger().Warn("processes of a session are left")
				return
			}
			attempt, cancel := context.WithTimeout(ctx, lingerInterval)
			_, err := group.Kill(attempt)
			cancel()
			if err == nil {
				err = group.Close()
				t.recovery.options.logger().Info("the survivors of a session are gone", "error", err)
				return
			}
		}
	})
}

// stop ends the attempts and waits for them.
func (l *lingerers) stop() {
	l.mu.Lock()
	l.stopped = true
	if l.end != nil {
		l.end()
	}
	l.mu.Unlock()
	l.running.Wait()
}
