package spawn

import (
	"context"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// A program can ask without end, about another file each time, until the user
// says yes or turns questions off. So after MostRefusals within refusalTime there
// is no question for silenceTime. A question that nobody has answered counts, and
// one that was withdrawn: a program could show and withdraw them without end, too.
const (
	// MostRefusals is after how many refusals in a minute no question is put for
	// a minute.
	MostRefusals = 5
	refusalTime  = time.Minute
	silenceTime  = time.Minute
	// maxUnasked bounds the denials that are remembered as not asked about.
	maxUnasked = 256
)

// questions puts the questions of one session to its user. A nil questions asks
// nothing.
type questions struct {
	put   func(ctx context.Context, denial Denial) Answer
	noted *record.Session
	now   func() time.Time

	mu      sync.Mutex // guards the fields below
	refused []time.Time
	silence time.Time // until when nothing is asked
	unasked map[askedAbout]bool
}

type askedAbout struct {
	access platform.Refused
	target string
}

func newQuestions(put func(context.Context, Denial) Answer, noted *record.Session) *questions {
	return &questions{put: put, noted: noted, now: time.Now, unasked: map[askedAbout]bool{}}
}

// ask asks the user, unless that was refused too often.
func (q *questions) ask(ctx context.Context, d platform.Denial) Answer {
	if q.isSilent(d) {
		return platform.AnswerNotNow
	}
	answer := q.put(ctx, Denial{Denial: d})
	if answer != platform.AnswerUnasked {
		q.noted.Answered(d, answer)
		if !answer.Allows() || ctx.Err() != nil {
			q.refuse()
		}
	}
	return answer
}

// isSilent reports whether nothing is asked now, and notes what was not.
func (q *questions) isSilent(d platform.Denial) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.now().Before(q.silence) {
		clear(q.unasked)
		return false
	}
	if len(q.unasked) < maxUnasked {
		q.unasked[askedAbout{d.Access, d.Target}] = true
	}
	return true
}

func (q *questions) refuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.refused = append(q.refused, now)
	if first := len(q.refused) - MostRefusals; first >= 0 {
		q.refused = q.refused[first:]
		if now.Sub(q.refused[0]) < refusalTime {
			q.silence, q.refused = now.Add(silenceTime), nil
		}
	}
}

// wasSilent reports whether a denial was not asked about, because others were
// refused too often.
func (q *questions) wasSilent(d platform.Denial) bool {
	if q == nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.unasked[askedAbout{d.Access, d.Target}]
}
