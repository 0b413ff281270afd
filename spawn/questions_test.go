package spawn

import (
	"context"
	"fmt"
	"sync"
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

// Refusals of one session of a group leave the questions of another as they are, and
// so does what belongs to none.
func TestQuestions_SilenceIsOfTheSessionThatWasRefused(t *testing.T) {
	t.Parallel()
	asked := 0
	q := newQuestions(func(context.Context, Denial) Answer {
		asked++
		return AnswerDeny
	}, nil)
	sessions := map[int]*patience{1: {}, 2: {}}
	q.whose = func(d platform.Denial) *patience { return sessions[d.PID] }
	about := func(session, i int) platform.Denial {
		return platform.Denial{PID: session, Access: platform.RefusedRead, Target: fmt.Sprint("/", i)}
	}
	for range MostRefusals {
		q.ask(t.Context(), about(1, 0))
	}
	for session, want := range map[int]Answer{1: platform.AnswerNotNow, 2: AnswerDeny, 3: AnswerDeny} {
		before := asked
		got := q.ask(t.Context(), about(session, 7))
		silent := want == platform.AnswerNotNow
		if got != want || (asked > before) == silent || q.wasSilent(about(session, 7)) != silent {
			t.Errorf("session %d: answer %d, want %d; asked: %t", session, got, want, asked > before)
		}
	}
	for range MostRefusals - 1 {
		q.ask(t.Context(), about(2, 0))
	}
	if got := q.ask(t.Context(), about(2, 8)); got != platform.AnswerNotNow {
		t.Errorf("control: the other session, after as many refusals: %d", got)
	}
}

// An answer about a directory answers what is asked about it, now and later. What
// is beside it, and changes after an answer for reading, are asked about.
func TestQuestions_ADirectory(t *testing.T) {
	t.Parallel()
	put, answers := make(chan Denial), map[string]chan Answer{"/d/a": make(chan Answer), "/dd/a": make(chan Answer)}
	q := newQuestions(func(ctx context.Context, d Denial) Answer {
		if d.Opened {
			return AnswerDirectory
		}
		put <- d
		select {
		case answer := <-answers[d.Target]: // never for a target that is not in the map
			return answer
		case <-ctx.Done():
			return AnswerWithdrawn
		}
	}, nil)
	ask := func(access platform.Refused, target, dir string) chan Answer {
		answer := make(chan Answer)
		go func() {
			answer <- q.ask(t.Context(), platform.Denial{Access: access, Target: target, Directory: dir})
		}()
		return answer
	}
	asked := func(access platform.Refused, target, dir string) chan Answer {
		t.Helper()
		answer := ask(access, target, dir)
		select {
		case d := <-put:
			if d.Target != target {
				t.Errorf("asked about %q, want %q", d.Target, target)
			}
		case got := <-answer:
			t.Fatalf("%s is not asked about: %d", target, got)
		}
		return answer
	}
	opens := asked(platform.RefusedRead, "/d/a", "/d")
	waits, beside := asked(platform.RefusedRead, "/d/b/c", "/d/b"), asked(platform.RefusedRead, "/dd/a", "/dd")
	answers["/d/a"] <- AnswerDirectory
	if got := <-opens; got != AnswerDirectory {
		t.Errorf("the question: %d", got)
	}
	if got := <-waits; got != AnswerDirectory {
		t.Errorf("another that waits: %d", got)
	}
	if got := <-ask(platform.RefusedRead, "/d/later", "/d"); got != AnswerDirectory {
		t.Errorf("a later one: %d", got)
	}
	answers["/dd/a"] <- AnswerSession
	if got := <-beside; got != AnswerSession {
		t.Errorf("beside it: %d", got)
	}
	change := asked(platform.RefusedCreate, "/d/a", "/d")
	answers["/d/a"] <- AnswerDirectory
	if got := <-change; got != AnswerDirectory {
		t.Errorf("a change: %d", got)
	}
	for _, access := range []platform.Refused{platform.RefusedRead, platform.RefusedWrite, platform.RefusedRemove} {
		if got := <-ask(access, "/d/x/y", "/d/x"); got != AnswerDirectory {
			t.Errorf("%s after an answer for changes: %d", access, got)
		}
	}
	for range MostRefusals {
		refused := asked(platform.RefusedRead, "/dd/a", "/dd")
		answers["/dd/a"] <- AnswerDeny
		<-refused
	}
	if got := <-ask(platform.RefusedRead, "/d/z", "/d"); got != AnswerDirectory {
		t.Errorf("after too many refusals: %d", got)
	}
}

// A no that is on its way when an answer opens the directory is a no.
func TestQuestions_ANoIsNotSettledByADirectory(t *testing.T) {
	t.Parallel()
	put := make(chan string)
	q := newQuestions(func(ctx context.Context, d Denial) Answer {
		switch {
		case d.Opened:
			return AnswerDirectory
		case d.Target == "/d/opens":
			return AnswerDirectory
		}
		put <- d.Target
		<-ctx.Done()
		if d.Target == "/d/no" {
			return AnswerDeny
		}
		return AnswerWithdrawn
	}, nil)
	ask := func(target string) Answer {
		return q.ask(t.Context(), platform.Denial{Access: platform.RefusedRead, Target: target, Directory: "/d"})
	}
	want := map[string]Answer{"/d/no": AnswerDeny, "/d/waits": AnswerDirectory}
	var all sync.WaitGroup
	for target, answer := range want {
		all.Go(func() {
			if got := ask(target); got != answer {
				t.Errorf("%s: %d, want %d", target, got, answer)
			}
		})
		<-put
	}
	if got := ask("/d/opens"); got != AnswerDirectory {
		t.Errorf("the directory: %d", got)
	}
	all.Wait()
}

func TestQuestions_NoMoreThanAUserReads(t *testing.T) {
	t.Parallel()
	put := make(chan bool)
	q := newQuestions(func(ctx context.Context, _ Denial) Answer {
		put <- true
		<-ctx.Done()
		return AnswerWithdrawn
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range maxQuestions {
		all.Go(func() { q.ask(ctx, platform.Denial{Target: fmt.Sprint(i)}) })
		<-put
	}
	if got := q.ask(ctx, platform.Denial{Target: "more"}); got != platform.AnswerNotNow {
		t.Errorf("one more: %d", got)
	}
}
