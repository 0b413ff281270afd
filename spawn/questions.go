package spawn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// A program can ask without end, about another file each time, until the user
// says yes or turns questions off. So after MostRefusals within refusalTime a
// session has no question for silenceTime. A question that nobody has answered
// counts, and one that was withdrawn: a program could show and withdraw them without
// end, too. Sessions of a group are counted apart: one must not silence another.
const (
	// MostRefusals is after how many refusals in a minute no question is put for
	// a minute.
	MostRefusals = 5
	refusalTime  = time.Minute
	silenceTime  = time.Minute
	// maxUnasked bounds the denials that are remembered as not asked about.
	maxUnasked = 256
	// maxQuestions bounds the questions that wait for an answer. What comes beyond
	// that waits for a question about its directory, or is refused.
	maxQuestions = 8
)

// questions puts the questions of one session to its user, or those of a group. A
// nil questions asks nothing.
type questions struct {
	put   func(ctx context.Context, denial Denial) Answer
	noted *record.Session
	now   func() time.Time
	// whose finds the patience with the session of a group that a denial belongs
	// to; nil if there is none. It is called without mu. It is nil itself if there
	// is one session.
	whose func(platform.Denial) *patience

	mu     sync.Mutex // guards the fields below, and every patience
	open   map[*openQuestion]bool
	opened []platform.Denial // whose directories answers have opened
	own    patience          // with whatever belongs to no session of a group
}

// patience is what the user has refused one session, and whether that is asked
// about nothing. The zero value is that with a session that was refused nothing.
type patience struct {
	refused []time.Time
	silence time.Time // until when nothing is asked
	unasked map[askedAbout]bool
}

// openQuestion is a question that waits for its answer.
type openQuestion struct {
	about    platform.Denial
	patience *patience
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed once there is an answer
}

type askedAbout struct {
	access platform.Refused
	target string
}

func newQuestions(ask func(context.Context, Denial) Answer, noted *record.Session) *questions {
	return &questions{put: ask, noted: noted, now: time.Now, open: map[*openQuestion]bool{}}
}

// patienceWith returns the refusals that are counted for a denial's session. mu is
// not held.
func (q *questions) patienceWith(d platform.Denial) *patience {
	if q.whose != nil {
		if p := q.whose(d); p != nil {
			return p
		}
	}
	return &q.own
}

// errSettled is why a question ends that an answer about its directory has settled.
var errSettled = errors.New("an answer about the directory has settled the question")

// ask asks the user, unless an answer has opened the directory and the access may be
// allowed unseen, or others were refused too often.
func (q *questions) ask(ctx context.Context, d platform.Denial) Answer {
	patience := q.patienceWith(d)
	for {
		covered, seen := q.covers(d)
		if covered {
			if answer := q.put(ctx, Denial{Denial: d, Opened: true}); answer != platform.AnswerUnasked {
				return answer
			}
		}
		asking, cancel := context.WithCancelCause(ctx)
		p := &openQuestion{about: d, patience: patience, cancel: cancel, done: make(chan struct{})}
		again, may := q.begin(p, seen)
		if !may {
			cancel(nil)
			if again == nil {
				return platform.AnswerNotNow
			}
			select {
			case <-again:
				continue
			case <-ctx.Done():
				return platform.AnswerNotNow
			}
		}
		answer := q.put(asking, Denial{Denial: d})
		settled := answer == platform.AnswerWithdrawn && errors.Is(context.Cause(asking), errSettled)
		q.end(p, answer)
		cancel(nil)
		if settled {
			continue
		}
		if answer == platform.AnswerWithdrawn {
			answer = platform.AnswerDeny
		}
		if answer.Asked() {
			q.noted.Answered(d, answer)
			if !answer.Allows() || ctx.Err() != nil {
				q.refuse(patience)
			}
		}
		return answer
	}
}

// begin notes a question that is about to be put. may is false if nothing is asked
// now. Then again, if not nil, is closed once that may have changed. seen is how
// many directories were open when the caller looked.
func (q *questions) begin(p *openQuestion, seen int) (again <-chan struct{}, may bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.opened) > seen:
		return already, false
	case p.patience.isOver(q.now(), p.about):
		return nil, false
	case len(q.open) < maxQuestions:
		q.open[p] = true
		return nil, true
	}
	for other := range q.open {
		if covers(other.about, p.about) {
			return other.done, false
		}
	}
	return nil, false
}

// already is closed.
var already = func() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

// end notes the answer to a question. An answer about a directory settles the
// other questions in it.
func (q *questions) end(p *openQuestion, answer Answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, p)
	close(p.done)
	if answer != platform.AnswerDirectory {
		return
	}
	q.opened = append(q.opened, p.about)
	for other := range q.open {
		if covers(p.about, other.about) {
			other.cancel(errSettled)
		}
	}
}

// covers reports whether an answer has opened the directory that a denial is in, and
// how many directories are open.
func (q *questions) covers(d platform.Denial) (covered bool, seen int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.opened, func(about platform.Denial) bool { return covers(about, d) }), len(q.opened)
}

// covers reports whether the answer "directory" about a denial is one about another,
// too: what is in the directory and below it. Whoever may change that may read it.
func covers(about, d platform.Denial) bool {
	return about.Directory != "" && d.Directory != "" && policy.Contains(about.Directory, d.Directory) &&
		(about.Access != platform.RefusedRead || d.Access == platform.RefusedRead)
}

// isOver reports whether nothing is asked now, and notes what was not.
func (p *patience) isOver(now time.Time, d platform.Denial) bool {
	if !now.Before(p.silence) {
		clear(p.unasked)
		return false
	}
	if p.unasked == nil {
		p.unasked = map[askedAbout]bool{}
	}
	if len(p.unasked) < maxUnasked {
		p.unasked[askedAbout{d.Access, d.Target}] = true
	}
	return true
}

// refuse notes that the user has refused a session something.
func (q *questions) refuse(p *patience) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	p.refused = append(p.refused, now)
	if first := len(p.refused) - MostRefusals; first >= 0 {
		p.refused = p.refused[first:]
		if now.Sub(p.refused[0]) < refusalTime {
			p.silence, p.refused = now.Add(silenceTime), nil
		}
	}
}

// wasSilent reports whether a denial was not asked about, because others were
// refused too often.
func (q *questions) wasSilent(d platform.Denial) bool {
	if q == nil {
		return false
	}
	patience := q.patienceWith(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	return patience.unasked[askedAbout{d.Access, d.Target}]
}
