package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"syscall"
	"time"
)

// processID is one process that is to die.
type processID struct {
	pid int
	// birth tells it from others that had the number before or get it later.
	// What it counts is up to whoever looks.
	birth uint64
}

// kill loop is how the processes of a group are found and ended. Its functions
// are called one at a time.
type killLoop struct {
	// look finds the living ones. It may hand each over as soon as it has found
	// it: against a process that forks and exits at full speed, the time
	// between seeing and killing decides.
	look func() iter.Seq2[processID, error]
	// kill ends one; ESRCH where it has ended by itself, or the number is
	// another's by now.
	kill func(processID) error
	// empty, where it is not nil, says whether nobody is left, and is never
	// wrong about it. Without it two looks in a row that find nobody have to
	// do: one look takes its time, and a process that forks behind it and exits
	// before it is not seen.
	empty func() (bool, error)
	// pause waits for processes that were killed to be gone, for the given time
	// at most.
	pause func(context.Context, time.Duration)
}

const (
	// killPause is the first pause between two looks; most processes are gone
	// sooner than that.
	killPause = time.Millisecond
	// longestKillPause is the pause that it grows to while nothing changes, as
	// with a process in an uninterruptible system call.
	longestKillPause = 100 * time.Millisecond
)

// converge looks and kills until nobody is left, and returns whom it has
// killed. When ctx ends first, the error wraps Survivors. At least one look is
// made.
func (h killLoop) converge(ctx context.Context) (map[processID]bool, error) {
	killed := map[processID]bool{}
	pause, quiet := killPause, 0
	for {
		if h.empty != nil {
			if empty, err := h.empty(); err != nil || empty {
				return killed, err
			}
		}
		left, news, failure := h.round(killed)
		switch {
		case failure != nil || news || len(left) > 0:
			quiet = 0
		case h.empty == nil:
			if quiet++; quiet == 2 {
				return killed, nil
			}
		}
		if (ctx.Err() != nil || failure == nil && !news && stuck.all(left)) && (quiet == 0 || h.empty != nil) {
			err := errors.Join(failure, &Survivors{PIDs: left})
			return withoutSurvivors(killed, err), err
		}
		if news {
			// Whoever was just killed may have forked before: its child is
			// killed at once.
			pause = killPause
			continue
		}
		h.pause(ctx, pause)
		pause = min(2*pause, longestKillPause)
	}
}

// withoutSurvivors takes those out of the killed whom an error names as alive.
func withoutSurvivors(killed map[processID]bool, err error) map[processID]bool {
	if survivors, ok := errors.AsType[*Survivors](err); ok {
		maps.DeleteFunc(killed, func(victim processID, _ bool) bool { return slices.Contains(survivors.PIDs, victim.pid) })
	}
	return killed
}

// round is one look. It returns who may still be there, and whether somebody
// was seen for the first time. A look that fails, for want of descriptors say,
// is no reason to give up what the next may find.
func (h killLoop) round(killed map[processID]bool) (left []int, news bool, failure error) {
	for found, err := range h.look() {
		if err != nil {
			return left, news, fmt.Errorf("look for processes: %w", err)
		}
		switch err := h.kill(found); {
		case errors.Is(err, syscall.ESRCH):
			news = true
			continue
		case err == nil && !killed[found]:
			killed[found], news = true, true
		}
		left = append(left, found.pid)
	}
	return left, news, nil
}

// sleep is the pause of a kill loop that learns nothing from waiting.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
