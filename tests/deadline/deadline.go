// Package deadline has time limits for tests that know the load of the machine.
// A test waits as long as what it waits for has no processor, so only what hangs
// or really takes too long reaches a limit.
package deadline

import (
	"context"
	"os"
	"sync"
	"time"
)

const (
	// sampleTime is how often deadlines check who has waited for a processor: a
	// sample reads files of each thread, which all of a test's processes pay for.
	sampleTime = 2 * time.Second
	// tookTime is how often Took does: what it measures may last a second.
	tookTime = 100 * time.Millisecond
	// mostProlonged is how many times its limit a deadline may be prolonged by:
	// what hangs while other tests of the process have no processor ends too.
	mostProlonged = 4
)

// starved adds up for how long processes have waited for a processor. It counts
// threads that have ended as far as it has seen them.
type starved struct {
	delays func(pid int, of map[int]time.Duration)
	pids   []int
	before map[int]time.Duration
	at     time.Time
}

func newStarved(delays func(pid int, of map[int]time.Duration), pids ...int) *starved {
	s := &starved{delays: delays, pids: pids, at: time.Now()}
	s.more()
	return s
}

// more is what has come since the last call. Several threads wait at the same
// time, so it is no longer than the time since then.
func (s *starved) more() (sum time.Duration) {
	now, at := map[int]time.Duration{}, time.Now()
	for _, pid := range s.pids {
		s.delays(pid, now)
	}
	for thread, delay := range now {
		sum += max(0, delay-s.before[thread])
	}
	sum = min(sum, at.Sub(s.at))
	s.before, s.at = now, at
	return sum
}

// Took runs a function, and returns how long it took without the time for which
// a process and its descendants waited for a processor meanwhile.
func Took(pid int, do func()) time.Duration { return took(newStarved(delays, pid), do) }

// TookBy is Took for processes whose descendants never stop working: it leaves out
// only the time for which these processes themselves waited.
func TookBy(do func(), pids ...int) time.Duration { return took(newStarved(ownDelays, pids...), do) }

func took(s *starved, do func()) time.Duration {
	begun := time.Now()
	waited := time.Duration(0) // the sampler's, until it has ended
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(tookTime)
		defer tick.Stop()
		for {
			select {
			case <-done:
				waited += s.more()
				return
			case <-tick.C: // threads end, and processes
				waited += s.more()
			}
		}
	}()
	func() {
		defer close(done) // do may end the test
		do()
	}()
	took := time.Since(begun)
	<-ended
	return max(took/(1+mostProlonged), took-waited)
}

// waiting adds up for how long this process and its descendants have waited for a
// processor. All deadlines share it, because a sample takes long if there are
// many processes.
var waiting struct {
	sync.Mutex // guards the fields below
	starved    *starved
	sum        time.Duration
}

// waited is the sum so far. It grows by one sample in sampleTime at most.
func waited() time.Duration {
	waiting.Lock()
	defer waiting.Unlock()
	now := time.Now()
	switch {
	case waiting.starved == nil:
		waiting.starved = newStarved(delays, os.Getpid())
	case now.Sub(waiting.starved.at) >= sampleTime:
		waiting.sum += waiting.starved.more()
	}
	return waiting.sum
}

// Deadline is a time limit that knows the load: it is prolonged by the time in
// which this process and its descendants waited for a processor. Its methods are
// safe for concurrent use.
type Deadline struct {
	begun  time.Time
	limit  time.Duration
	before time.Duration // waited by then
}

// New starts a deadline.
func New(limit time.Duration) *Deadline { return &Deadline{time.Now(), limit, waited()} }

// Passed reports whether the time is over.
func (d *Deadline) Passed() bool {
	if time.Since(d.begun) > sampleTime {
		waited() // threads end
	}
	return d.left() <= 0
}

// left is how long it takes at least until the time is over.
func (d *Deadline) left() time.Duration {
	left := d.limit - time.Since(d.begun)
	if left <= 0 {
		left += min(waited()-d.before, mostProlonged*d.limit)
	}
	return left
}

// Wait waits until done is closed, and reports false if the time was over before.
func (d *Deadline) Wait(done <-chan struct{}) bool {
	for {
		if d.Passed() {
			return false
		}
		timer := time.NewTimer(max(0, min(d.left(), sampleTime)))
		select {
		case <-done:
			timer.Stop()
			return true
		case <-timer.C:
		}
	}
}

// Until calls a condition again and again, and reports whether it came true within
// a limit. One that takes long is called less often, or it would keep a processor
// busy that others wait for.
func Until(limit time.Duration, condition func() bool) bool {
	for end := New(limit); ; {
		begun := time.Now()
		if condition() {
			return true
		}
		if end.Passed() {
			return false
		}
		time.Sleep(max(5*time.Millisecond, min(4*time.Since(begun), end.left())))
	}
}

// After is time.After for a limit that knows the load.
func After(limit time.Duration) <-chan time.Time {
	over := make(chan time.Time, 1)
	d := New(limit)
	var check func()
	check = func() {
		if left := d.left(); left > 0 {
			time.AfterFunc(left, check)
			return
		}
		over <- time.Now()
	}
	time.AfterFunc(limit, check)
	return over
}

// Context is context.WithTimeout for a limit that knows the load. After the limit
// the context is cancelled, and its cause is context.DeadlineExceeded.
func Context(parent context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	over := After(limit)
	go func() {
		select {
		case <-ctx.Done():
		case <-over:
			cancel(context.DeadlineExceeded)
		}
	}()
	return ctx, func() { cancel(nil) }
}
