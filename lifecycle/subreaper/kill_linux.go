package subreaper

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
)

// kill ends everything below this process, and returns how many processes it
// has ended. It does not kill each one: the death of a terminal's session
// leader hangs up on its foreground processes.
func (k *subreaper) kill(ctx context.Context) (int, error) {
	if k.reap() {
		return 0, nil
	}
	before, _ := k.below() // if the list cannot be read, only the killed are counted
	killed, err := proc.KillLoop{
		Find: k.scan, Kill: k.killOne, Pause: k.pause,
		Empty: func() (bool, error) { return k.reap(), nil },
	}.Run(ctx)
	for _, entry := range before {
		if !entry.Dead {
			killed[entry.ID] = true
		}
	}
	return len(proc.WithoutSurvivors(killed, err)), err
}

// below lists the descendants of this process, parents first. It asks each for
// its children, which takes time in proportion to the session. It reads the
// whole table only if the kernel was built without that list
// (CONFIG_PROC_CHILDREN).
func (k *subreaper) below() ([]proc.Entry, error) {
	children, err := proc.ChildrenOf("self")
	if errors.Is(err, fs.ErrNotExist) {
		return k.belowByTable()
	}
	if err != nil {
		return nil, err
	}
	var found []proc.Entry
	seen := map[int]bool{}
	for len(children) > 0 {
		pid := children[0]
		children = children[1:]
		entry, err := proc.Find(pid)
		if err != nil || seen[pid] {
			continue // ended since, or its number was reused meanwhile
		}
		seen[pid] = true
		if k.domainKiller.Is(pid) {
			continue
		}
		found = append(found, entry)
		more, _ := proc.ChildrenOf(strconv.Itoa(pid)) // if it has ended since, its children are ours at the next scan
		children = append(children, more...)
	}
	return found, nil
}

func (k *subreaper) belowByTable() ([]proc.Entry, error) {
	table, err := proc.Table()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	return proc.Descendants(table, func(entry proc.Entry) bool {
		return entry.Parent == self && !k.domainKiller.Is(entry.PID)
	}), nil
}

// mostIdle is after how many scans in a row that find no other process the domain
// killer is killed: it has had its turn by then, or somebody traces or stops it.
const mostIdle = 10

// scan finds the children. If all of them have been killed already and are
// still there, it finds their descendants. The children are usually enough,
// because the children of each that dies become ours. Listing them takes
// microseconds. Against processes that fork and exit at full speed, anything
// slower is always too late.
func (k *subreaper) scan() iter.Seq2[proc.ID, error] {
	return func(yield func(proc.ID, error) bool) {
		k.domainKiller.Kill()
		children, err := proc.ChildrenOf("self")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(proc.ID{}, err)
			return
		}
		found := false
		for _, pid := range children {
			if k.domainKiller.Is(pid) {
				continue // it ends by itself
			}
			victim, known := k.marked[pid]
			if !known {
				victim, found = k.mark(pid), true
			}
			if !yield(victim, nil) {
				return
			}
		}
		if found {
			return
		}
		below, err := k.below()
		if err != nil {
			yield(proc.ID{}, err)
			return
		}
		if len(below) > 0 {
			k.idle = 0
		} else if k.idle++; k.idle >= mostIdle {
			k.domainKiller.GiveUp()
		}
		for _, entry := range below {
			if entry.Dead || k.marked[entry.PID] == entry.ID {
				continue
			}
			if entry.Parent == os.Getpid() {
				k.marked[entry.PID] = entry.ID
			}
			if !yield(entry.ID, nil) {
				return
			}
		}
	}
}

// mark records a child that is about to be killed, until it is waited for.
func (k *subreaper) mark(pid int) proc.ID {
	victim := proc.ID{PID: pid}
	if entry, err := proc.Find(pid); err == nil {
		victim.Birth = entry.Birth
	}
	k.marked[pid] = victim
	return victim
}

func (k *subreaper) killOne(victim proc.ID) error {
	if k.marked[victim.PID] != victim {
		return proc.Kill(victim)
	}
	// A child keeps its number until it is waited for, which only this
	// goroutine does. A dead child can be signalled without an error, so check
	// first.
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, victim.PID, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if err != nil || info.Signo != 0 {
		return unix.ESRCH
	}
	return unix.Kill(victim.PID, unix.SIGKILL)
}

// pause waits until a child has ended.
func (k *subreaper) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.children:
	case <-timer.C:
	case <-ctx.Done():
	}
}
