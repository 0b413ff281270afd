package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of every process below it whose own
// parent has ended (PR_SET_CHILD_SUBREAPER, prctl(2)), until ctx ends. Yama,
// where it is on, lets a process look only into those it descends to; a daemon
// that let go of its parent would otherwise be init's. And what a subreaper
// that somebody has killed leaves becomes ours to end.
func adopt(ctx context.Context) (done func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	return func() {
		<-ctx.Done()
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}, nil
}

// reapPause is the time between two looks at a child that has ended and that
// nobody here has started: an orphan, or one that a process of an unsandboxed
// session has given to us (CLONE_PARENT, clone(2)). A child that was started
// around this package, by a library, is waited for by whoever has started it
// well before the second.
const reapPause = time.Second

// reapStrangers waits for children that were not started by this package, once
// they have ended, until ctx does.
func reapStrangers(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	seen := reapOnce(map[processID]bool{}) // some may have ended before
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

// reapOnce reaps the strangers that were seen before, and returns the others.
func reapOnce(seen map[processID]bool) map[processID]bool {
	strangers, err := strangeChildren()
	if err != nil {
		return seen
	}
	next := map[processID]bool{}
	for _, entry := range strangers {
		switch {
		case !entry.dead:
		case seen[entry.processID]:
			_, _ = unix.Wait4(entry.pid, nil, unix.WNOHANG|unix.WALL, nil) // nobody else does, so that the number is its own
		default:
			next[entry.processID] = true
		}
	}
	return next
}

// strangeChildren lists the children of this process that it has not started
// itself. None is started meanwhile, which could be taken for one.
func strangeChildren() ([]processEntry, error) {
	own.starting.Lock()
	defer own.starting.Unlock()
	var strangers []processEntry
	pids, err := childrenOf("self")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without CONFIG_PROC_CHILDREN
		table, err := processTable()
		if err != nil {
			return nil, err
		}
		for _, entry := range table {
			if entry.parent == os.Getpid() && !own.has(entry.pid) {
				strangers = append(strangers, entry)
			}
		}
		return strangers, nil
	}
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if own.has(pid) {
			continue
		}
		if entry, err := findProcess(pid); err == nil && entry.parent == os.Getpid() {
			strangers = append(strangers, entry)
		}
	}
	return strangers, nil
}

// endOrphans kills what dead subreapers have left, as far as it has become this
// process's child, and what descends from that.
func endOrphans(ctx context.Context) (int, error) {
	killed, err := killLoop{
		look: func() iter.Seq2[processID, error] {
			return func(yield func(processID, error) bool) {
				strangers, err := strangeChildren()
				if err != nil {
					yield(processID{}, err)
					return
				}
				for _, found := range living(strangers) { // each that dies leaves us its own
					if !yield(found, nil) {
						return
					}
				}
			}
		},
		kill:  killExactly,
		pause: sleep,
	}.converge(ctx)
	return len(killed), err
}

// has reports whether a process was started by this one, which waits for it.
func (c *children) has(pid int) bool {
	_, there := c.pids.Load(pid)
	return there
}
