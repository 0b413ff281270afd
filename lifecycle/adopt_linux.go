package lifecycle

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of every process below it whose own parent has ended (PR_SET_CHILD_SUBREAPER, prctl(2)), and reaps
// those until ctx ends. Yama, where it is on, lets a process look only into those it descends to; a daemon that let go of its parent would
// otherwise be init's.
func adopt(ctx context.Context) (done func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer signal.Stop(ended)
		reapAdopted(ctx, ended)
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}()
	return func() { <-finished }, nil
}

// reapPause is the time between two looks at an orphan that has ended. A child that was started around this package, by a library, is waited
// for by whoever has started it well before the second.
const reapPause = time.Second

func reapAdopted(ctx context.Context, ended <-chan os.Signal) {
	seen := map[prey]bool{}
	for {
		if len(seen) == 0 {
			select {
			case <-ended:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-time.After(reapPause):
		case <-ctx.Done():
			return
		}
		seen = reapOnce(seen)
	}
}

// reapOnce reaps the orphans that were seen before, and returns the others. No child of our own is started meanwhile, which could be taken
// for one.
func reapOnce(seen map[prey]bool) map[prey]bool {
	own.starting.Lock()
	defer own.starting.Unlock()
	next := map[prey]bool{}
	table, err := processTable()
	if err != nil {
		return seen
	}
	for _, entry := range table {
		switch {
		case entry.parent != os.Getpid() || !entry.dead || own.has(entry.pid):
		case seen[entry.prey]:
			_, _ = unix.Wait4(entry.pid, nil, unix.WNOHANG, nil)
		default:
			next[entry.prey] = true
		}
	}
	return next
}

// has reports whether a process was started by this one, which waits for it.
func (c *children) has(pid int) bool {
	_, there := c.pids.Load(pid)
	return there
}
