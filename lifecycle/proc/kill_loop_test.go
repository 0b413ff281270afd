package proc

import (
	"context"
	"errors"
	"iter"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, nil) }

// crowd simulates the processes of one group.
type crowd struct {
	alive   map[int]uint64 // birth by process id
	born    uint64
	scans   int
	before  func(scan int)   // called when a scan begins
	between func(victim int) // called between finding and killing
	results map[int]error    // the result of killing these; nil: the kill has no effect
	failing func(scan int) error
}

func newCrowd(pids ...int) *crowd {
	c := &crowd{alive: map[int]uint64{}, results: map[int]error{}}
	for _, pid := range pids {
		c.fork(pid)
	}
	return c
}

func (c *crowd) fork(pid int) {
	c.born++
	c.alive[pid] = c.born
}

func (c *crowd) killLoop() KillLoop { return KillLoop{Find: c.scan, Kill: c.kill, Pause: Sleep} }

// proved is a kill loop that learns when no process is left.
func (c *crowd) proved() KillLoop {
	h := c.killLoop()
	h.Empty = func() (bool, error) { return len(c.alive) == 0, nil }
	return h
}

func (c *crowd) scan() iter.Seq2[ID, error] {
	return func(yield func(ID, error) bool) {
		c.scans++
		if c.before != nil {
			c.before(c.scans)
		}
		if c.failing != nil {
			if err := c.failing(c.scans); err != nil {
				yield(ID{}, err)
				return
			}
		}
		var seen []ID
		for pid, birth := range c.alive {
			seen = append(seen, ID{pid, birth})
		}
		slices.SortFunc(seen, func(a, b ID) int { return a.PID - b.PID })
		for _, found := range seen {
			if !yield(found, nil) {
				return
			}
		}
	}
}

func (c *crowd) kill(victim ID) error {
	if c.between != nil {
		c.between(victim.PID)
	}
	if c.alive[victim.PID] != victim.Birth {
		return syscall.ESRCH
	}
	if err, results := c.results[victim.PID]; results {
		return err
	}
	delete(c.alive, victim.PID)
	return nil
}

// bothKillLoops runs a test with and without proof of emptiness, on a simulated
// clock.
func bothKillLoops(t *testing.T, run func(t *testing.T, newLoop func(*crowd) KillLoop)) {
	t.Helper()
	for name, newLoop := range map[string]func(*crowd) KillLoop{
		"scans only": (*crowd).killLoop, "with proof": (*crowd).proved,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { run(t, newLoop) })
		})
	}
}

// extinct checks that a kill loop has killed a number of processes and left
// none.
func extinct(t *testing.T, c *crowd, killed map[ID]bool, err error, want int) {
	t.Helper()
	if err != nil || len(c.alive) > 0 || len(killed) != want {
		t.Errorf("killed %d, want %d; alive are %v; error %v", len(killed), want, c.alive, err)
	}
}

func TestKillLoop_EmptyGroup(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd()
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 0)
	})
}

func TestKillLoop_KillsACrowd(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(2, 3, 4, 5)
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 4)
	})
}

// Each process has forked before it is killed.
func TestKillLoop_KillsForkingProcesses(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(10)
		next := 11
		c.between = func(int) {
			if next < 200 {
				c.fork(next)
				next++
			}
		}
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 190)
	})
}

// Each process that is found has forked and ended before it is killed, until
// the loop is faster once.
func TestKillLoop_KillsForkChains(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(100)
		hops := 0
		c.between = func(victim int) {
			if hops++; hops < 500 {
				delete(c.alive, victim)
				c.fork(victim + 1)
			}
		}
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 1)
		if hops != 500 {
			t.Errorf("%d hops", hops)
		}
	})
}

// A chain that one scan misses is there again at the next.
func TestKillLoop_OneEmptyScanProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		c.before = func(scan int) {
			if scan%2 == 0 && scan < 20 {
				c.fork(scan)
			}
		}
		killed, err := c.killLoop().Run(t.Context())
		extinct(t, c, killed, err, 9)
	})
}

func TestKillLoop_TellsReusedNumbersApart(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(7)
		spared := uint64(0)
		c.between = func(int) {
			if spared == 0 {
				delete(c.alive, 7) // it ends, and a younger process of the group gets its number
				c.fork(7)
				spared = c.alive[7]
				return
			}
			if c.alive[7] == spared && c.born < 5 {
				c.fork(7) // and again
			}
		}
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 1)
		for victim := range killed {
			if victim.Birth != c.born {
				t.Errorf("killed %+v, but the last was born %d", victim, c.born)
			}
		}
	})
}

// Zombies are not listed, and some processes end between finding and killing.
// Nobody has killed them.
func TestKillLoop_DoesNotCountProcessesThatEndedThemselves(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(2, 3)
		c.between = func(victim int) {
			if victim == 2 {
				delete(c.alive, 2)
			}
		}
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 1)
	})
}

func TestKillLoop_ReportsSurvivors(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(2, 3, 4)
		c.results[3] = nil           // in an uninterruptible system call
		c.results[4] = syscall.EPERM // belongs to root
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		killed, err := newLoop(c).Run(ctx)
		survivors, ok := errors.AsType[*Survivors](err)
		if !ok || !slices.Equal(survivors.PIDs, []int{3, 4}) || !errors.Is(err, ErrSurvivors) {
			t.Errorf("error is %v", err)
		}
		if len(killed) != 1 {
			t.Errorf("killed %v", killed)
		}
		if took := time.Since(start); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
		if c.scans > 200 {
			t.Errorf("%d scans of processes that do not change", c.scans)
		}
		delete(c.results, 3)
		delete(c.results, 4)
		killed, err = newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 2)
	})
}

func TestKillLoop_ScansOnceWhenItsTimeIsUpAlready(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := newCrowd(2, 3)
		if _, err := newLoop(c).Run(ctx); err == nil || len(c.alive) > 0 {
			t.Errorf("alive are %v, error %v", c.alive, err)
		}
		if killed, err := newLoop(c).Run(ctx); err != nil || len(killed) > 0 {
			t.Errorf("of an empty group it killed %v: %v", killed, err)
		}
	})
}

func TestKillLoop_ContinuesAfterAFailedScan(t *testing.T) {
	t.Parallel()
	bothKillLoops(t, func(t *testing.T, newLoop func(*crowd) KillLoop) {
		c := newCrowd(2)
		c.failing = func(scan int) error {
			if scan < 5 {
				return syscall.EMFILE
			}
			return nil
		}
		killed, err := newLoop(c).Run(t.Context())
		extinct(t, c, killed, err, 1)

		c = newCrowd(2)
		c.failing = func(int) error { return syscall.EMFILE }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newLoop(c).Run(ctx); !errors.Is(err, syscall.EMFILE) || !errors.Is(err, ErrSurvivors) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestKillLoop_FailedProof(t *testing.T) {
	t.Parallel()
	c := newCrowd(2)
	h := c.killLoop()
	h.Empty = func() (bool, error) { return false, syscall.EINVAL }
	if _, err := h.Run(t.Context()); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("error is %v", err)
	}
}
