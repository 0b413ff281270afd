package proc

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
type ID struct {
	PID int
	// birth tells it from others that had the number before or get it later.
	// What it counts is up to whoever looks.
	Birth uint64
}

// kill loop is how the processes of a group are found and ended. Its functions
// are called one at a time.
type KillLoop struct {
	// look finds the living ones. It may hand each over as soon as it has found
	// it: against a process that forks and exits at full speed, the time
	// between seeing and killing decides.
	Find func() iter.Seq2[ID, error]
	// kill ends one; ESRCH where it has ended by itself, or the number is
	// another's by now.
	Kill func(ID) error
	// empty, where it is not nil, says whether nobody is left, and is never
	// wrong about it. Without it two looks in a row that find nobody have to
	// do: one look takes its time, and a process that forks behind it and exits
	// before it is not seen.
	Empty func() (bool, error)
	// pause waits for processes that were killed to be gone, for the given time
	// at most.
	Pause func(context.Context, time.Duration)
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
func (h KillLoop) Run(ctx context.Context) (map[ID]bool, error) {
	killed := map[ID]bool{}
	pause, quiet := killPause, 0
	for {
		if h.Empty != nil {
			if empty, err := h.Empty(); err != nil || empty {
				return killed, err
			}
		}
		left, news, failure := h.round(killed)
		switch {
		case failure != nil || news || len(left) > 0:
			quiet = 0
		case h.Empty == nil:
			if quiet++; quiet == 2 {
				return killed, nil
			}
		}
		if (ctx.Err() != nil || failure == nil && !news && stuck.all(left)) && (quiet == 0 || h.Empty != nil) {
			err := errors.Join(failure, &Survivors{PIDs: left})
			return WithoutSurvivors(killed, err), err
		}
		if news {
			// Whoever was just killed may have forked before: its child is
			// killed at once.
			pause = killPause
			continue
		}
		h.Pause(ctx, pause)
		pause = min(2*pause, longestKillPause)
	}
}

// withoutSurvivors takes those out of the killed whom an error names as alive.
func WithoutSurvivors(killed map[ID]bool, err error) map[ID]bool {
	if survivors, ok := errors.AsType[*Survivors](err); ok {
		maps.DeleteFunc(killed, func(victim ID, _ bool) bool { return slices.Contains(survivors.PIDs, victim.PID) })
	}
	return killed
}

// round is one look. It returns who may still be there, and whether somebody
// was seen for the first time. A look that fails, for want of descriptors say,
// is no reason to give up what the next may find.
func (h KillLoop) round(killed map[ID]bool) (left []int, news bool, failure error) {
	for found, err := range h.Find() {
		if err != nil {
			return left, news, fmt.Errorf("look for processes: %w", err)
		}
		switch err := h.Kill(found); {
		case errors.Is(err, syscall.ESRCH):
			news = true
			continue
		case err == nil && !killed[found]:
			killed[found], news = true, true
		}
		left = append(left, found.PID)
	}
	return left, news, nil
}

// sleep is the pause of a kill loop that learns nothing from waiting.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
