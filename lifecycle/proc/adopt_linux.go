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

// Adopt makes this process the parent of every descendant whose own parent has
// ended (PR_SET_CHILD_SUBREAPER, prctl(2)), until ctx ends. Yama, if it is on,
// lets a process inspect only its descendants, and a daemon would otherwise
// become a child of init. If somebody kills a subreaper, its orphans become
// children of this process, which can end them.
func Adopt(ctx context.Context) (done func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	return func() {
		<-ctx.Done()
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	}, nil
}

// reapPause is the time between two checks of an ended child that this package
// has not started: an orphan, or one that a process of an unsandboxed session
// has given to us (CLONE_PARENT, clone(2)). A library that starts a child
// itself waits for it well before the second check.
const reapPause = time.Second

// ReapForeign waits for ended children that this package has not started, until
// ctx ends.
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

// reapOnce reaps the ended foreign children that were seen before, and returns
// the others.
func reapOnce(seen map[ID]bool) map[ID]bool {
	foreign, err := foreignChildren()
	if err != nil {
		return seen
	}
	next := map[ID]bool{}
	for _, entry := range foreign {
		switch {
		case !entry.Dead:
		case seen[entry.ID]:
			// Nobody else reaps it, so the number is still its own.
			_, _ = unix.Wait4(entry.PID, nil, unix.WNOHANG|unix.WALL, nil)
		default:
			next[entry.ID] = true
		}
	}
	return next
}

// foreignChildren lists the children of this process that it has not started
// itself. It blocks Start meanwhile, because a child that is just being started
// would look foreign.
func foreignChildren() ([]Entry, error) {
	own.starting.Lock()
	defer own.starting.Unlock()
	var foreign []Entry
	pids, err := ChildrenOf("self")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without CONFIG_PROC_CHILDREN
		table, err := Table()
		if err != nil {
			return nil, err
		}
		for _, entry := range table {
			if entry.Parent == os.Getpid() && !own.has(entry.PID) {
				foreign = append(foreign, entry)
			}
		}
		return foreign, nil
	}
	if err != nil {
		return nil, err
	}
	for _, pid := range pids {
		if own.has(pid) {
			continue
		}
		if entry, err := Find(pid); err == nil && entry.Parent == os.Getpid() {
			foreign = append(foreign, entry)
		}
	}
	return foreign, nil
}

// EndOrphans kills what dead subreapers have left, if it has become a child of
// this process, and its descendants.
func EndOrphans(ctx context.Context) (int, error) {
	killed, err := KillLoop{
		Find: func() iter.Seq2[ID, error] {
			return func(yield func(ID, error) bool) {
				foreign, err := foreignChildren()
				if err != nil {
					yield(ID{}, err)
					return
				}
				for _, found := range Living(foreign) { // the children of each that dies become ours
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

// has reports whether this process has started a process and still waits for
// it.
func (c *children) has(pid int) bool {
	_, there := c.pids.Load(pid)
	return there
}

// Alone reports whether this process has no living foreign child. The program
// that executed it may have left some, and nothing would tell their orphans
// from those of a session.
func Alone() bool {
	if os.Getpid() == 1 {
		return false // in a container every orphan is a child of process 1
	}
	foreign, err := foreignChildren()
	return err == nil && len(Living(foreign)) == 0
}
