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

// kill ends everything below this process, and returns how many it has killed.
func (k *keeper) kill(ctx context.Context) (int, error) {
	clear(k.spared)
	killed, err := hunt{
		look: k.look, kill: k.killOne, pause: k.pause,
		empty: func() (bool, error) { return k.reap(), nil },
	}.converge(ctx)
	for victim := range k.spared {
		delete(killed, victim)
	}
	return len(killed), err
}

// look finds the children, and where all of them have been killed already and are still there, what is below them. The children are
// enough as a rule: each that dies leaves us its own. Listing them takes microseconds, and reading the whole table milliseconds, in which
// a process that forks and exits at full speed has done so many times.
func (k *keeper) look() iter.Seq2[prey, error] {
	return func(yield func(prey, error) bool) {
		children, err := ownChildren()
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without CONFIG_PROC_CHILDREN has the table only
			yield(prey{}, err)
			return
		}
		news := false
		for _, pid := range children {
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
		table, err := processTable()
		if err != nil {
			yield(prey{}, err)
			return
		}
		self := os.Getpid()
		below := lineage(table, func(entry processEntry) bool { return entry.parent == self })
		for _, entry := range below {
			if entry.dead || k.marked[entry.pid] == entry.prey {
				continue
			}
			if entry.parent == self {
				k.marked[entry.pid] = entry.prey
			}
			if !yield(entry.prey, nil) {
				return
			}
		}
	}
}

// mark notes a child that is about to be killed, until it was waited for.
func (k *keeper) mark(pid int) prey {
	victim := prey{pid: pid}
	if entry, err := findProcess(pid); err == nil {
		victim.birth = entry.birth
	}
	k.marked[pid] = victim
	return victim
}

func (k *keeper) killOne(victim prey) error {
	if k.marked[victim.pid] != victim {
		return killExactly(victim)
	}
	// A child's number is its own until it was waited for, and only this goroutine does that. Whether it has ended is asked first because
	// the dead can be killed without an error.
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, victim.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if err != nil || info.Signo != 0 {
		return unix.ESRCH
	}
	return unix.Kill(victim.pid, unix.SIGKILL)
}

// pause waits until a child has ended.
func (k *keeper) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.children:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ownChildren lists the children of this process: of each of its threads, because the kernel gives an orphan to any of them.
func ownChildren() ([]int, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil, fmt.Errorf("list threads: %w", err)
	}
	var children []int
	for _, thread := range threads {
		list, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
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
