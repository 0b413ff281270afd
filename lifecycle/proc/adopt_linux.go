package proc

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
func Adopt(ctx context.Context) (done func(), err error) {
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
func ReapForeign(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	seen := reapOnce(map[ID]bool{}) // some may have ended before
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
func reapOnce(seen map[ID]bool) map[ID]bool {
	strangers, err := foreignChildren()
	if err != nil {
		return seen
	}
	next := map[ID]bool{}
	for _, entry := range strangers {
		switch {
		case !entry.Dead:
		case seen[entry.ID]:
			_, _ = unix.Wait4(entry.PID, nil, unix.WNOHANG|unix.WALL, nil) // nobody else does, so that the number is its own
		default:
			next[entry.ID] = true
		}
	}
	return next
}

// strangeChildren lists the children of this process that it has not started
// itself. None is started meanwhile, which could be taken for one.
func foreignChildren() ([]Entry, error) {
	own.starting.Lock()
	defer own.starting.Unlock()
	var strangers []Entry
	pids, err := ChildrenOf("self")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without CONFIG_PROC_CHILDREN
		table, err := Table()
		if err != nil {
			return nil, err
		}
		for _, entry := range table {
			if entry.Parent == os.Getpid() && !own.has(entry.PID) {
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
		if entry, err := Find(pid); err == nil && entry.Parent == os.Getpid() {
			strangers = append(strangers, entry)
		}
	}
	return strangers, nil
}

// endOrphans kills what dead subreapers have left, as far as it has become this
// process's child, and what descends from that.
func EndOrphans(ctx context.Context) (int, error) {
	killed, err := KillLoop{
		Find: func() iter.Seq2[ID, error] {
			return func(yield func(ID, error) bool) {
				strangers, err := foreignChildren()
				if err != nil {
					yield(ID{}, err)
					return
				}
				for _, found := range Living(strangers) { // each that dies leaves us its own
					if !yield(found, nil) {
						return
					}
				}
			}
		},
		Kill:  Kill,
		Pause: Sleep,
	}.Run(ctx)
	return len(killed), err
}

// has reports whether a process was started by this one, which waits for it.
func (c *children) has(pid int) bool {
	_, there := c.pids.Load(pid)
	return there
}

// isAlone reports whether this process has no living child that came with its
// program: whoever has executed it may have left some. Nothing would tell what
// such a child leaves from what a session does.
func Alone() bool {
	if os.Getpid() == 1 {
		return false // of a container: every process that lost its parent is a child of this one
	}
	strangers, err := foreignChildren()
	return err == nil && len(Living(strangers)) == 0
}
