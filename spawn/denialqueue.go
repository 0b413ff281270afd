package spawn

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

// Denial is something that a session was refused, as often as Count says since
// it was told of last.
type Denial struct {
	platform.Denial
	// Missed counts others that are not told, because there were too many at
	// once.
	Missed int
}

// Answer is what is said about an access that somebody was asked about; see
// platform.Answer.
type Answer = platform.Answer

// The answers there are.
const (
	AnswerDeny    = platform.AnswerDeny
	AnswerOnce    = platform.AnswerOnce
	AnswerSession = platform.AnswerSession
)

const (
	// maxDenials bounds the different denials of one session that are
	// remembered. The one that was quiet for longest makes room.
	maxDenials = 256
	// maxLearnt is the same for one that learns, whose denials are read in the
	// end.
	maxLearnt = 1 << 16
	// denialBurst is how many may be told at once, and denialPace how soon
	// after each another one: 20 a second.
	denialBurst = 20
	denialPace  = 50 * time.Millisecond
	// firstSilence is how long after one was told the same is told again, with
	// the number of times; each time the silence doubles.
	firstSilence = time.Second
	mostSilence  = time.Minute
)

// denialQueue gathers what one session is refused. Whoever writes never waits; a
// program that tries without end is told of a few times a minute, and takes no
// more memory than one that tries once. A nil denialQueue takes nothing.
type denialQueue struct {
	most int // entries

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	entries map[denialKey]*denialEntry
	order   int
	missed  int
	tokens  int       // how many may be told now
	filled  time.Time // when tokens was right
	ended   bool
}

type denialKey struct {
	access          platform.Refused
	target, process string
}

type denialEntry struct {
	platform.Denial               // with those that are not told yet
	total           int           // all
	due             time.Time     // before that it is not told
	silence         time.Duration // after it is told next
	order           int
}

func newDenialQueue(most int) *denialQueue {
	q := &denialQueue{most: most, entries: map[denialKey]*denialEntry{}, tokens: denialBurst, filled: time.Now()}
	q.changed.L = &q.mu
	return q
}

// put notes a denial. Which process it was does not make it another: a build
// may start thousands that try the same.
func (q *denialQueue) put(d platform.Denial) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	key := denialKey{d.Access, d.Target, d.Process}
	e := q.entries[key]
	if e == nil {
		if len(q.entries) >= q.most && !q.evict() {
			q.missed += d.Count
			return
		}
		q.order++
		e = &denialEntry{order: q.order, silence: firstSilence}
		q.entries[key] = e
	}
	fresh := e.Count == 0
	count := e.Count + d.Count
	e.total += d.Count
	e.Denial = d
	e.Count = count
	if fresh {
		q.changed.Signal()
	}
}

// miss notes that something was refused of which nothing more is known.
func (q *denialQueue) miss() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.missed++
}

// evict makes room for another. q.mu is held.
func (q *denialQueue) evict() bool {
	now := time.Now()
	var quiet *denialKey
	for key, e := range q.entries {
		if e.Count == 0 && e.due.Before(now) && (quiet == nil || e.due.Before(q.entries[*quiet].due)) {
			quiet = &key
		}
	}
	if quiet != nil {
		delete(q.entries, *quiet)
	}
	return quiet != nil
}

// next waits for a denial that is to be told; false once there will be none.
func (q *denialQueue) next() (Denial, bool) {
	if q == nil {
		return Denial{}, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		now := time.Now()
		q.fill(now)
		e, wait := q.earliest(now)
		switch {
		case q.ended && (e == nil || q.tokens == 0):
			return Denial{}, false
		case e != nil && q.tokens == 0:
			wait = denialPace - now.Sub(q.filled)
		case e != nil && wait <= 0:
			return q.report(e, now), true
		}
		var alarm *time.Timer
		if e != nil {
			alarm = time.AfterFunc(wait, q.changed.Broadcast)
		}
		q.changed.Wait()
		if alarm != nil {
			alarm.Stop()
		}
	}
}

func (q *denialQueue) fill(now time.Time) {
	if q.ended {
		return // the last that is told has counted the rest
	}
	for q.tokens < denialBurst && now.Sub(q.filled) >= denialPace {
		q.tokens++
		q.filled = q.filled.Add(denialPace)
	}
	if q.tokens == denialBurst {
		q.filled = now
	}
}

// earliest is what is to be told next, and in what time. In the end nothing
// waits. q.mu is held.
func (q *denialQueue) earliest(now time.Time) (first *denialEntry, wait time.Duration) {
	for _, e := range q.entries {
		if e.Count > 0 && (first == nil || cmp.Or(e.due.Compare(first.due), cmp.Compare(e.order, first.order)) < 0) {
			first = e
		}
	}
	if first == nil || q.ended {
		return first, 0
	}
	return first, first.due.Sub(now)
}

func (q *denialQueue) report(e *denialEntry, now time.Time) Denial {
	denial := Denial{Denial: e.Denial, Missed: q.missed}
	e.Count, q.missed = 0, 0
	e.due = now.Add(e.silence)
	e.silence = min(2*e.silence, mostSilence)
	q.tokens--
	if q.ended && q.tokens == 0 { // the last that is told
		for _, rest := range q.entries {
			denial.Missed += rest.Count
		}
	}
	return denial
}

// end lets next give what has not been told, as far as may be told at once, and
// then nothing any more.
func (q *denialQueue) end() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.ended {
		q.ended, q.tokens = true, denialBurst
	}
	q.changed.Broadcast()
}

// all lists everything that is remembered, with how often it was in all, in the
// order in which it came first, and counts the rest.
func (q *denialQueue) all() (list []Denial, missed int) {
	if q == nil {
		return nil, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	entries := make([]*denialEntry, 0, len(q.entries))
	for _, e := range q.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *denialEntry) int { return cmp.Compare(a.order, b.order) })
	list = make([]Denial, len(entries))
	for i, e := range entries {
		list[i] = Denial{Denial: e.Denial}
		list[i].Count = e.total
	}
	return list, q.missed
}
