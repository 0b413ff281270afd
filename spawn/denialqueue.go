package spawn

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// Denial is an operation that a session was refused. Count says how often,
// since the last report of the same.
type Denial struct {
	platform.Denial
	// Missed counts other denials that are not reported, because there were too
	// many at once.
	Missed int
	// Lacking says why the session has no access although its settings grant it;
	// "" if they do not.
	Lacking string
	// Opened says that an answer has opened the directory that it is in. Nobody is
	// asked again: the answer is AnswerDirectory if it may be asked about.
	Opened bool
	// Number is that of "sandbox-sidecar allow"; 0 if it has none, or none yet.
	Number int
}

// lackingAt says why a session lacks a path; "" if it does not.
func lackingAt(places []platform.Missing, path string) string {
	for _, place := range places {
		if policy.Contains(place.Path, path) {
			return place.Reason
		}
	}
	return ""
}

// The parts of "git worktree add", as in package platform.
const (
	WorktreePlace   = platform.WorktreePlace
	WorktreeContent = platform.WorktreeContent
)

// Answer is the user's decision about an access; see platform.Answer.
type Answer = platform.Answer

// The answers, as in package platform.
const (
	AnswerDeny      = platform.AnswerDeny
	AnswerOnce      = platform.AnswerOnce
	AnswerSession   = platform.AnswerSession
	AnswerDirectory = platform.AnswerDirectory
	AnswerUnasked   = platform.AnswerUnasked
	AnswerWithdrawn = platform.AnswerWithdrawn
)

const (
	// maxDenials bounds the different denials that are remembered for a session.
	// The one that was silent for longest makes room for another.
	maxDenials = 256
	// maxLearnt is the same bound for a session that learns, whose denials are
	// read at the end.
	maxLearnt = 1 << 16
	// denialBurst is how many reports may come at once, and denialPace the time
	// until each further one: 20 a second.
	denialBurst = 20
	denialPace  = 50 * time.Millisecond
	// firstSilence is how long after a report the same denial is reported again,
	// with the number of times. The silence doubles each time, up to
	// mostSilence.
	firstSilence = time.Second
	mostSilence  = time.Minute
)

// denialQueue gathers the denials of one session. Writing never waits. A
// program that retries for ever causes a few reports a minute, and takes no
// more memory than one that tries once. A nil denialQueue is empty and has
// ended.
type denialQueue struct {
	most    int                // entries
	lacking []platform.Missing // what the settings grant and the session could not get

	mu      sync.Mutex // guards the fields below
	changed sync.Cond
	entries map[denialKey]*denialEntry
	order   int
	missed  int
	tokens  int       // how many reports may come now
	filled  time.Time // when tokens was last up to date
	ended   bool
	printed bool // an entry may come from a program's output
}

type denialKey struct {
	access                        platform.Refused
	target, process, detail, name string
	greeting                      string
	datagram, background          bool
}

type denialEntry struct {
	platform.Denial               // its Count is of those not yet reported
	total           int           // count of all
	due             time.Time     // of the next report
	silence         time.Duration // after the next report
	order           int           // of the first denial
}

func newDenialQueue(most int) *denialQueue {
	q := &denialQueue{most: most, entries: map[denialKey]*denialEntry{}, tokens: denialBurst, filled: time.Now()}
	q.changed.L = &q.mu
	return q
}

// put adds a denial, unless it is known from elsewhere, and reports whether it
// did. It ignores the process id, because a build may start thousands of
// processes that try the same.
func (q *denialQueue) put(d platform.Denial) (added bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended || q.known(d) {
		return false
	}
	key := denialKey{d.Access, d.Target, d.Process, d.Detail, d.Name, d.Greeting, d.Datagram, d.Background}
	e := q.entries[key]
	if e == nil {
		if len(q.entries) >= q.most && !q.evict() {
			q.missed += d.Count
			return false
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
	return true
}

// miss counts denials that were not put.
func (q *denialQueue) miss(count int) {
	if q == nil || count == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.missed += count
}

// known reports whether an access is known from elsewhere, too: what a program
// prints of it is nothing new. If the output came first, what the sandbox says
// replaces it, unless that was reported. q.mu is held.
func (q *denialQueue) known(d platform.Denial) bool {
	if d.Source == platform.SourceOutput {
		for key, e := range q.entries {
			if key.target == d.Target && e.Source != platform.SourceOutput {
				return true
			}
		}
		q.printed = true
		return false
	}
	if !q.printed {
		return false
	}
	key := denialKey{access: d.Access, target: d.Target}
	e := q.entries[key]
	switch {
	case e == nil || e.Source != platform.SourceOutput:
		return false
	case e.Count == e.total:
		delete(q.entries, key) // not reported yet
		return false
	}
	e.total += d.Count
	return true
}

// evict removes the entry that was silent for longest, and reports whether
// there was one. q.mu is held.
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

// next waits for a denial to report. It returns false once there will be no
// more.
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

// fill adds the tokens that are due by now. q.mu is held.
func (q *denialQueue) fill(now time.Time) {
	if q.ended {
		return // the last report has counted the rest
	}
	for q.tokens < denialBurst && now.Sub(q.filled) >= denialPace {
		q.tokens++
		q.filled = q.filled.Add(denialPace)
	}
	if q.tokens == denialBurst {
		q.filled = now
	}
}

// earliest is the denial to report next, and the time until then, which is zero
// once the queue has ended. q.mu is held.
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

// report takes an entry's count and returns it as a denial. q.mu is held.
func (q *denialQueue) report(e *denialEntry, now time.Time) Denial {
	denial := Denial{Denial: e.Denial, Missed: q.missed, Lacking: lackingAt(q.lacking, e.Target)}
	e.Count, q.missed = 0, 0
	e.due = now.Add(e.silence)
	e.silence = min(2*e.silence, mostSilence)
	q.tokens--
	if q.ended && q.tokens == 0 { // the last report
		for _, rest := range q.entries {
			denial.Missed += rest.Count
		}
	}
	return denial
}

// end lets next return as many unreported denials as one burst holds, and then
// nothing.
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

// any reports whether there was any denial.
func (q *denialQueue) any() bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries) > 0 || q.missed > 0
}

// all lists the remembered denials with their total counts, in the order of
// their first occurrence, and counts the others.
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
		list[i] = Denial{Denial: e.Denial, Lacking: lackingAt(q.lacking, e.Target)}
		list[i].Count = e.total
	}
	return list, q.missed
}
