package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// kill ends everything below this process, and returns how many lived and do so
// no more. Not all of them have to be killed one by one: the death of a
// terminal's session leader hangs up on its foreground processes.
func (k *subreaper) kill(ctx context.Context) (int, error) {
	if k.reap() {
		return 0, nil
	}
	begun, _ := k.below() // where it cannot be read, those that are killed are counted
	killed, err := killLoop{
		look: k.look, kill: k.killOne, pause: k.pause,
		empty: func() (bool, error) { return k.reap(), nil },
	}.converge(ctx)
	for _, entry := range begun {
		if !entry.dead {
			killed[entry.processID] = true
		}
	}
	return len(withoutSurvivors(killed, err)), err
}

// below lists what descends from this process, children first. It asks each for
// its children, which costs as much as the session is large, and reads the
// whole table only where the kernel was built without an answer to that
// (CONFIG_PROC_CHILDREN).
func (k *subreaper) below() ([]processEntry, error) {
	children, err := childrenOf("self")
	if errors.Is(err, fs.ErrNotExist) {
		return k.belowByTable()
	}
	if err != nil {
		return nil, err
	}
	var found []processEntry
	seen := map[int]bool{}
	for len(children) > 0 {
		pid := children[0]
		children = children[1:]
		entry, err := findProcess(pid)
		if err != nil || seen[pid] {
			continue // ended since, or its number was given away meanwhile
		}
		seen[pid] = true
		if k.domainKiller.is(pid) {
			continue
		}
		found = append(found, entry)
		more, _ := childrenOf(strconv.Itoa(pid)) // where it has ended since, its children are ours at the next look
		children = append(children, more...)
	}
	return found, nil
}

func (k *subreaper) belowByTable() ([]processEntry, error) {
	table, err := processTable()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	return descendants(table, func(entry processEntry) bool { return entry.parent == self && !k.domainKiller.is(entry.pid) }), nil
}

// look finds the children, and where all of them have been killed already and
// are still there, what is below them. The children are enough as a rule: each
// that dies leaves us its own. Listing them takes microseconds; against
// processes that fork and exit at full speed anything slower would always be
// too late.
func (k *subreaper) look() iter.Seq2[processID, error] {
	return func(yield func(processID, error) bool) {
		k.domainKiller.strike()
		children, err := childrenOf("self")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(processID{}, err)
			return
		}
		news := false
		for _, pid := range children {
			if k.domainKiller.is(pid) {
				continue // it ends when it is done
			}
			victim, known := k.marked[pid]
			if !known {
				victim, news = k.mark(pid), true
			}
			if !yield(victim, nil) {
				return
			}
		}
		if news {
			return
		}
		below, err := k.below()
		if err != nil {
			yield(processID{}, err)
			return
		}
		for _, entry := range below {
			if entry.dead || k.marked[entry.pid] == entry.processID {
				continue
			}
			if entry.parent == os.Getpid() {
				k.marked[entry.pid] = entry.processID
			}
			if !yield(entry.processID, nil) {
				return
			}
		}
	}
}

// mark notes a child that is about to be killed, until it was waited for.
func (k *subreaper) mark(pid int) processID {
	victim := processID{pid: pid}
	if entry, err := findProcess(pid); err == nil {
		victim.birth = entry.birth
	}
	k.marked[pid] = victim
	return victim
}

func (k *subreaper) killOne(victim processID) error {
	if k.marked[victim.pid] != victim {
		return killExactly(victim)
	}
	// A child's number is its own until it was waited for, and only this
	// goroutine does that. Whether it has ended is asked first because the dead
	// can be killed without an error.
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, victim.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if err != nil || info.Signo != 0 {
		return unix.ESRCH
	}
	return unix.Kill(victim.pid, unix.SIGKILL)
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

// childrenOf lists the children of a process: of each of its threads, because
// the kernel gives an orphan to any of them.
func childrenOf(pid string) ([]int, error) {
	threads, err := os.ReadDir("/proc/" + pid + "/task")
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var children []int
	for _, thread := range threads {
		list, err := os.ReadFile("/proc/" + pid + "/task/" + thread.Name() + "/children")
		if err != nil {
			return nil, fmt.Errorf("list children: %w", err)
		}
		for field := range bytes.FieldsSeq(list) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				children = append(children, pid)
			}
		}
	}
	return children, nil
}
