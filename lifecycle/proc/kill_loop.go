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

// ID identifies a process: by its process id and its start.
type ID struct {
	PID int
	// Birth tells the process from others with the same number. Its unit is up
	// to the function that fills it in.
	Birth uint64
}

// KillLoop finds and kills the processes of a group until none is left. Its
// functions are called one at a time.
type KillLoop struct {
	// Find finds the living processes. It should yield each at once: against a
	// process that forks and exits at full speed, the time between finding and
	// killing decides.
	Find func() iter.Seq2[ID, error]
	// Kill kills one process. It returns ESRCH if the process has ended by
	// itself, or the number belongs to another.
	Kill func(ID) error
	// Empty reports with certainty whether no process is left. If it is nil,
	// two scans in a row must find nobody. One is not enough: a process that
	// forks after the scan has passed, and exits before the scan reaches it, is
	// missed.
	Empty func() (bool, error)
	// Pause waits until killed processes are gone, at most for the given time.
	Pause func(context.Context, time.Duration)
}

const (
	// killPause is the first pause between two scans; most processes are gone
	// sooner.
	killPause = time.Millisecond
	// longestKillPause is the pause after many scans without any change, for
	// example while a process is in an uninterruptible system call.
	longestKillPause = 100 * time.Millisecond
)

// Run scans and kills until no process is left, and returns the killed. If ctx
// ends first, the error wraps Survivors. At least one scan is made.
func (h KillLoop) Run(ctx context.Context) (map[ID]bool, error) {
	killed := map[ID]bool{}
	pause, quiet := killPause, 0
	for {
		if h.Empty != nil {
			if empty, err := h.Empty(); err != nil || empty {
				return killed, err
			}
		}
		left, changed, failure := h.round(killed)
		switch {
		case failure != nil || changed || len(left) > 0:
			quiet = 0
		case h.Empty == nil:
			if quiet++; quiet == 2 {
				return killed, nil
			}
		}
		if (ctx.Err() != nil || failure == nil && !changed && stuck.all(left)) && (quiet == 0 || h.Empty != nil) {
			err := errors.Join(failure, &Survivors{PIDs: left})
			return WithoutSurvivors(killed, err), err
		}
		if changed {
			// A process that was just killed may have forked before: kill its
			// child at once.
			pause = killPause
			continue
		}
		h.Pause(ctx, pause)
		pause = min(2*pause, longestKillPause)
	}
}

// WithoutSurvivors removes from the killed those that an error names as alive.
func WithoutSurvivors(killed map[ID]bool, err error) map[ID]bool {
	if survivors, ok := errors.AsType[*Survivors](err); ok {
		maps.DeleteFunc(killed, func(victim ID, _ bool) bool { return slices.Contains(survivors.PIDs, victim.PID) })
	}
	return killed
}

// round is one scan. It returns the processes that may still be there, and
// whether one was found for the first time. The loop continues after a scan that
// fails, for example for lack of descriptors: the next may succeed.
func (h KillLoop) round(killed map[ID]bool) (left []int, changed bool, failure error) {
	for found, err := range h.Find() {
		if err != nil {
			return left, changed, fmt.Errorf("find processes: %w", err)
		}
		switch err := h.Kill(found); {
		case errors.Is(err, syscall.ESRCH):
			changed = true
			continue
		case err == nil && !killed[found]:
			killed[found], changed = true, true
		}
		left = append(left, found.PID)
	}
	return left, changed, nil
}

// Sleep is the pause of a kill loop that is not woken by a process's end.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
