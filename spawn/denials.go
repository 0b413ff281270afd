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

// ledger gathers what one session is refused. Whoever writes never waits; a
// program that tries without end is told of a few times a minute, and takes no
// more memory than one that tries once. A nil ledger takes nothing.
type ledger struct {
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

func newLedger(most int) *ledger {
	l := &ledger{most: most, entries: map[denialKey]*denialEntry{}, tokens: denialBurst, filled: time.Now()}
	l.changed.L = &l.mu
	return l
}

// put notes a denial. Which process it was does not make it another: a build
// may start thousands that try the same.
func (l *ledger) put(d platform.Denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	key := denialKey{d.Access, d.Target, d.Process}
	e := l.entries[key]
	if e == nil {
		if len(l.entries) >= l.most && !l.forget() {
			l.missed += d.Count
			return
		}
		l.order++
		e = &denialEntry{order: l.order, silence: firstSilence}
		l.entries[key] = e
	}
	fresh := e.Count == 0
	count := e.Count + d.Count
	e.total += d.Count
	e.Denial = d
	e.Count = count
	if fresh {
		l.changed.Signal()
	}
}

// miss notes that something was refused of which nothing more is known.
func (l *ledger) miss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missed++
}

// forget makes room for another. l.mu is held.
func (l *ledger) forget() bool {
	now := time.Now()
	var quiet *denialKey
	for key, e := range l.entries {
		if e.Count == 0 && e.due.Before(now) && (quiet == nil || e.due.Before(l.entries[*quiet].due)) {
			quiet = &key
		}
	}
	if quiet != nil {
		delete(l.entries, *quiet)
	}
	return quiet != nil
}

// next waits for a denial that is to be told; false once there will be none.
func (l *ledger) next() (Denial, bool) {
	if l == nil {
		return Denial{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		now := time.Now()
		l.fill(now)
		e, wait := l.earliest(now)
		switch {
		case l.ended && (e == nil || l.tokens == 0):
			return Denial{}, false
		case e != nil && l.tokens == 0:
			wait = denialPace - now.Sub(l.filled)
		case e != nil && wait <= 0:
			return l.tell(e, now), true
		}
		var alarm *time.Timer
		if e != nil {
			alarm = time.AfterFunc(wait, l.changed.Broadcast)
		}
		l.changed.Wait()
		if alarm != nil {
			alarm.Stop()
		}
	}
}

func (l *ledger) fill(now time.Time) {
	if l.ended {
		return // the last that is told has counted the rest
	}
	for l.tokens < denialBurst && now.Sub(l.filled) >= denialPace {
		l.tokens++
		l.filled = l.filled.Add(denialPace)
	}
	if l.tokens == denialBurst {
		l.filled = now
	}
}

// earliest is what is to be told next, and in what time. In the end nothing
// waits. l.mu is held.
func (l *ledger) earliest(now time.Time) (first *denialEntry, wait time.Duration) {
	for _, e := range l.entries {
		if e.Count > 0 && (first == nil || cmp.Or(e.due.Compare(first.due), cmp.Compare(e.order, first.order)) < 0) {
			first = e
		}
	}
	if first == nil || l.ended {
		return first, 0
	}
	return first, first.due.Sub(now)
}

func (l *ledger) tell(e *denialEntry, now time.Time) Denial {
	told := Denial{Denial: e.Denial, Missed: l.missed}
	e.Count, l.missed = 0, 0
	e.due = now.Add(e.silence)
	e.silence = min(2*e.silence, mostSilence)
	l.tokens--
	if l.ended && l.tokens == 0 { // the last that is told
		for _, rest := range l.entries {
			told.Missed += rest.Count
		}
	}
	return told
}

// end lets next give what has not been told, as far as may be told at once, and
// then nothing any more.
func (l *ledger) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended, l.tokens = true, denialBurst
	}
	l.changed.Broadcast()
}

// all lists everything that is remembered, with how often it was in all, in the
// order in which it came first, and counts the rest.
func (l *ledger) all() (list []Denial, missed int) {
	if l == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	entries := make([]*denialEntry, 0, len(l.entries))
	for _, e := range l.entries {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b *denialEntry) int { return cmp.Compare(a.order, b.order) })
	list = make([]Denial, len(entries))
	for i, e := range entries {
		list[i] = Denial{Denial: e.Denial}
		list[i].Count = e.total
	}
	return list, l.missed
}
