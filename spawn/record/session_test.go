package record

import (
	"encoding/json"
	"fmt"
	"slices"
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

// Which directories a user has opened is there, also if it comes too fast.
func TestAnswered_NamesTheDirectories(t *testing.T) {
	t.Parallel()
	r := &recorder{share: 1 << 20}
	s := begin(r)
	for i := range 2 * maxLines {
		s.Denied(denied(fmt.Sprintf("n%d.example:443", i), "p"))
	}
	for _, dir := range []string{"/d", "/e"} {
		s.Answered(platform.Denial{Access: "read", Target: dir + "/file", Directory: dir}, platform.AnswerDirectory)
	}
	s.Ended(0, 0, false, nil)
	var opened []string
	for _, e := range r.events {
		if e.Event == audit.Asked {
			opened = append(opened, e.Answer+" "+e.Detail+" "+e.Target+strings.Join(e.Targets, " "))
		}
	}
	if want := []string{"directory /d /d/file", "directory /e /e/file"}; !slices.Equal(opened, want) {
		t.Errorf("%q, want %q", opened, want)
	}
}

// Any number of files can match a pattern of protected paths. What comes too
// fast is counted, and refusals take no room from it.
func TestAlarm_IsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{share: 1 << 20}
		s := begin(r)
		for i := range 2 * maxLines {
			s.Denied(denied(fmt.Sprintf("n%d.example:443", i), "p"))
		}
		begun := r.len()
		const alarms = 3 * maxAlarms
		alarm := func(i int) {
			s.Alarm(platform.Alarm{Kind: platform.AlarmCreated, Path: fmt.Sprint("/p/.env", i)})
		}
		for i := range alarms {
			alarm(i)
		}
		if lines := r.len() - begun; lines != maxAlarms {
			t.Errorf("%d lines in a minute, want %d", lines, maxAlarms)
		}
		time.Sleep(2 * silence)
		synctest.Wait()
		alarm(alarms)
		s.Ended(0, 0, false, nil)
		named, more := 0, 0
		for _, e := range r.events {
			if e.Event == audit.Review {
				named, more = named+len(e.Changed), more+e.More
			}
		}
		if named != maxAlarms+1 || more != alarms-maxAlarms {
			t.Errorf("%d are named, %d counted", named, more)
		}
	})
}

// What is held has a bound, and what finds no room is counted.
func TestFold_IsBounded(t *testing.T) {
	t.Parallel()
	r := &recorder{share: 1}
	s := begin(r)
	const most, size = 8000, 1 << 10
	for i := range most {
		s.Denied(denied(fmt.Sprintf("%04d%s", i, strings.Repeat("x", size)), "p"))
	}
	if len(s.order) > maxFolded || s.room < 0 {
		t.Errorf("%d are remembered, with room for %d bytes", len(s.order), s.room)
	}
	s.Ended(0, 0, false, nil)
	named, count := r.targets()
	if count != most || len(named) < maxHeld/(2*maxListedTarget) || len(named) >= most {
		t.Errorf("%d targets are named, %d accesses", len(named), count)
	}
}

// bytes are what the lines take, with what every line has.
func (r *recorder) bytes(t *testing.T) (sum int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		e.Version, e.User, e.Via, e.UID, e.Sidecar = audit.Version, "ann", "serve", 1000, 1234567
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		sum++
		for _, r := range string(text) {
			if sum++; r >= 0x7f { // it can be escaped
				sum += len(`\u0000`) - 1
			}
		}
	}
	return sum
}

// A session has a megabyte of lines in a minute, and another one of targets in
// lists, whatever its targets and its project are called. The control is that
// each target is still named.
func TestFold_BoundsTheBytes(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{
		"short": "x", "long": strings.Repeat("x", 4000), "escaped": strings.Repeat("\x01", 4000),
		"wide": strings.Repeat("\u202e", 1300), "quotes": strings.Repeat(`"`, 4000), "half": strings.Repeat("y", 500),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{share: 1 << 20}
				s := Begin(r, policy.Audit{Dir: "/d"}, audit.Event{
					Session: "0123456789abcdef0123456789abcdef0123", Project: "/" + strings.Repeat("p", 255),
					Kind: "terminal",
				}, func(*audit.Event) {})
				_ = s.Acknowledged()
				const targets = 5000
				for i := range targets {
					s.Denied(denied(part+fmt.Sprint(i)+part, "process"))
				}
				time.Sleep(2 * silence)
				synctest.Wait()
				named, count := r.targets()
				if count != targets || len(named) != targets+1 {
					t.Errorf("%d targets are named, %d accesses", len(named), count)
				}
				const most = 2*maxBytes + 1<<18
				sum := r.bytes(t)
				if sum > most {
					t.Errorf("%d bytes, at most %d", sum, most)
				}
				t.Logf("%d bytes in %d lines, %d targets", sum, r.len(), len(named))
			})
		})
	}
}
