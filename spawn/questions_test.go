package spawn

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
)

func TestQuestions_RestAfterRefusals(t *testing.T) {
	t.Parallel()
	answer, asked, now := AnswerDeny, 0, time.Now()
	q := newQuestions(func(context.Context, Denial) Answer {
		asked++
		return answer
	}, nil)
	q.now = func() time.Time { return now }
	about := func(i int) platform.Denial {
		return platform.Denial{Access: platform.RefusedRead, Target: fmt.Sprint("/", i)}
	}
	expect := func(what string, i int, want Answer, total int) {
		t.Helper()
		if got := q.ask(t.Context(), about(i)); got != want || asked != total {
			t.Errorf("%s: answer %d, asked %d times; want %d and %d", what, got, asked, want, total)
		}
	}
	for i := range MostRefusals {
		expect("a no", i, AnswerDeny, i+1)
	}
	answer = AnswerSession
	expect("too many", 6, platform.AnswerNotNow, 5)
	if !q.wasSilent(about(6)) || q.wasSilent(about(0)) {
		t.Error("what was not asked is not told apart")
	}
	now = now.Add(silenceTime - 1)
	expect("not yet", 7, platform.AnswerNotNow, 5)
	now = now.Add(1)
	expect("a minute later", 8, AnswerSession, 6)
	if q.wasSilent(about(6)) {
		t.Error("the silence has not ended")
	}
	for i := range 3 * MostRefusals { // a no every 15 s, and many a yes
		answer = AnswerDeny
		expect("a slow no", i, AnswerDeny, asked+1)
		answer = AnswerOnce
		expect("a yes", i, AnswerOnce, asked+1)
		now = now.Add(refusalTime / (MostRefusals - 1))
	}
	answer = AnswerUnasked
	for i := range 3 * MostRefusals {
		expect("nothing to ask about", i, AnswerUnasked, asked+1)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	answer, now = AnswerOnce, now.Add(time.Hour)
	for range MostRefusals {
		q.ask(gone, about(0))
	}
	expect("withdrawn ones count", 9, platform.AnswerNotNow, asked)
}
