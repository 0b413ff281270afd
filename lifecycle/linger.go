//go:build unix

package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// lingerers are groups with survivors.
type lingerers struct {
	mu      sync.Mutex // guards the fields below
	end     context.CancelFunc
	ctx     context.Context // made with the first group
	stopped bool
	left    int // groups that still had survivors at the end
	running sync.WaitGroup
}

// lingerInterval is the pause between two attempts to kill the same survivors.
// SIGKILL is pending for each already, so only their new children matter.
const lingerInterval = time.Second

// Linger continues to kill a group for which Kill has reported survivors, and
// closes it once it is empty. It returns at once; nobody waits for an
// uninterruptible system call. Closing the tracker ends it. What is left then
// stays in the journal, for the next sweep.
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
			// The caller has just killed them.
			if proc.Sleep(ctx, lingerInterval); ctx.Err() != nil {
				t.recovery.options.logger().Warn("processes of a session are still alive; the next sidecar " +
					"continues to end them")
				l.mu.Lock()
				defer l.mu.Unlock()
				l.left++
				return
			}
			attempt, cancel := context.WithTimeout(ctx, lingerInterval)
			_, err := group.Kill(attempt)
			cancel()
			if err == nil {
				err = group.Close()
				t.recovery.options.logger().Info("the surviving processes of a session have ended", "error", err)
				return
			}
		}
	})
}

// stop ends the attempts and waits for them. The error counts the groups
// that are not empty, and wraps ErrSurvivors.
func (l *lingerers) stop() error {
	l.mu.Lock()
	l.stopped = true
	if l.end != nil {
		l.end()
	}
	l.mu.Unlock()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left > 0 {
		return fmt.Errorf("end sessions (%d): %w", l.left, &proc.Survivors{})
	}
	return nil
}
