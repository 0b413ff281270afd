package record

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// recorder keeps events. It takes so many of those that share, at a time.
type recorder struct {
	mu     sync.Mutex
	share  int
	events []audit.Event
}

func (r *recorder) Record(_ policy.Audit, event audit.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if event.Held() && len(r.events) >= r.share {
		return audit.ErrShare
	}
	r.events = append(r.events, event)
	return nil
}

func (r *recorder) targets() (named map[string]bool, count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	named = map[string]bool{}
	for _, e := range r.events {
		for _, target := range append(e.Targets, e.Target) {
			named[target] = true
		}
		count += e.Count + e.More
	}
	return named, count
}

func (r *recorder) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

func begin(r *recorder) *Session {
	s := Begin(r, policy.Audit{Dir: "/d", Required: true}, audit.Event{Session: "s"}, func(*audit.Event) {})
	_ = s.Acknowledged()
	return s
}

func denied(target, process string) platform.Denial {
	return platform.Denial{Access: platform.RefusedConnect, Target: target, Process: process, Count: 1}
}

// A session sets the names of its processes. The control is the line that the
// first access to each target has.
func TestFold_ProcessNamesHideNoTarget(t *testing.T) {
	t.Parallel()
	r := &recorder{share: 1 << 20}
	s := begin(r)
	for i := range 5000 {
		s.Denied(denied("a.example:443", fmt.Sprint("name", i)))
		s.Answered(denied("asked.example:443", fmt.Sprint("name", i)), platform.AnswerDeny)
	}
	s.Denied(denied("b.example:443", "last"))
	if lines := r.len(); lines != 4 { // with the start
		t.Errorf("%d lines", lines)
	}
	s.Ended(0, 0, false, nil)
	named, count := r.targets()
	if !named["a.example:443"] || !named["b.example:443"] || !named["asked.example:443"] || count != 10_001 {
		t.Errorf("%v, %d times", named, count)
	}
}

// A session has 2,000 lines of accesses a minute. What comes after that is
// listed when the minute is over, and nothing is forgotten.
func TestFold_ListsWhatComesTooFast(t *testing.T) {
	t.Parallel()
	for name, share := range map[string]int{"a minute's lines": 1 << 20, "a busy trail": 700} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{share: share}
				s := begin(r)
				const targets = 6000
				for i := range targets {
					s.Denied(denied(fmt.Sprintf("n%d.example:443", i), "p"))
				}
				before := r.len()
				if most := min(maxLines+1, share); before != most {
					t.Errorf("%d lines in a minute, want %d", before, most)
				}
				time.Sleep(2 * silence)
				synctest.Wait()
				named, count := r.targets()
				if len(named) != targets+1 || count != targets { // the start has none
					t.Errorf("%d targets are named, %d accesses", len(named), count)
				}
				if lines := r.len() - before; lines > 64 {
					t.Errorf("%d lines of lists", lines)
				}
				s.Ended(0, 0, false, nil)
				if _, again := r.targets(); again != count {
					t.Errorf("%d accesses at the end", again)
				}
			})
		})
	}
}

// What is held has a bound, and what finds no room is counted.
func TestFold_IsBounded(t *testing.T) {
	t.Parallel()
	r := &recorder{share: 1}
	s := begin(r)
	const most, size = 2000, 1 << 10
	for i := range most {
		s.Denied(denied(fmt.Sprintf("%04d%s", i, strings.Repeat("x", size)), "p"))
	}
	if len(s.order) > maxFolded || s.room < 0 {
		t.Errorf("%d are remembered, with room for %d bytes", len(s.order), s.room)
	}
	s.Ended(0, 0, false, nil)
	named, count := r.targets()
	if count != most || len(named) < maxHeld/(2*size) || len(named) >= most {
		t.Errorf("%d targets are named, %d accesses", len(named), count)
	}
}
