package spawn

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/display"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/agent"
)

func TestOtherAgent_SaysWhatHappened(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]error{
		"is not set": otherAgent("", fs.ErrNotExist), "its agent has ended": otherAgent("/run/gone", fs.ErrNotExist),
		`cannot follow "/run/a"`: otherAgent("/run/a", fs.ErrPermission), "another socket": otherAgent("/run/a", nil),
	} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

// Each use of a key, by its entry and the answers, and what is reported.
func TestKeyUses(t *testing.T) {
	t.Parallel()
	const key, other = "SHA256:key", "SHA256:other"
	list := func(keys ...policy.SigningKey) []policy.SigningKey { return keys }
	never := func(ctx context.Context) Answer {
		<-ctx.Done()
		return AnswerSession // too late
	}
	says := func(answer Answer) func(context.Context) Answer {
		return func(context.Context) Answer { return answer }
	}
	for name, test := range map[string]struct {
		keys   []policy.SigningKey
		answer func(context.Context) Answer // nil: nobody can be asked
		may    []bool                       // of each use
		asked  int
	}{
		"listed":            {list(policy.SigningKey{Key: key}), says(AnswerDeny), []bool{true, true}, 0},
		"all keys":          {list(policy.SigningKey{Key: "*"}), nil, []bool{true}, 0},
		"another is listed": {list(policy.SigningKey{Key: other}), says(AnswerSession), []bool{false, false}, 0},
		"another is asked":  {list(policy.SigningKey{Key: other, Ask: true}), says(AnswerSession), []bool{false}, 0},
		"none is listed":    {nil, says(AnswerSession), []bool{false}, 0},
		"yes, once":         {list(policy.SigningKey{Key: key, Ask: true}), says(AnswerOnce), []bool{true, true}, 2},
		"yes, in all": {
			list(policy.SigningKey{Key: key, Ask: true}), says(AnswerSession), []bool{true, true}, 1,
		},
		"no":                 {list(policy.SigningKey{Key: key, Ask: true}), says(AnswerDeny), []bool{false, false}, 1},
		"nonsense":           {list(policy.SigningKey{Key: key, Ask: true}), says(9), []bool{false}, 1},
		"no answer":          {list(policy.SigningKey{Key: "*", Ask: true}), never, []bool{false, false}, 2},
		"nobody to be asked": {list(policy.SigningKey{Key: key, Ask: true}), nil, []bool{false}, 0},
		"all, and one asked": {
			list(policy.SigningKey{Key: "*"}, policy.SigningKey{Key: key, Ask: true}), says(AnswerDeny),
			[]bool{false},
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var denied []platform.Denial
			asked := 0
			u := &keyUses{
				keys: test.keys, timeout: 20 * time.Millisecond, answered: map[keyUse]Answer{},
				denied: func(d platform.Denial) { denied = append(denied, d) },
			}
			if test.answer != nil {
				u.timeout = max(u.timeout, time.Minute*time.Duration(1-boolInt(name == "no answer")))
				u.ask = func(ctx context.Context, d platform.Denial) Answer {
					asked++
					if d.Access != platform.RefusedSign || d.Target != key ||
						d.Name != `"me \" (", to log in as "git\n"` {
						t.Errorf("asked about %+v", d)
					}
					return test.answer(ctx)
				}
			}
			var may []bool
			for range test.may {
				may = append(may, u.may(t.Context(), agent.Use{
					Key: key, Purpose: "to log in as", For: "git\n", Comment: func() string { return `me " (` },
				}))
			}
			refused := len(slices.DeleteFunc(slices.Clone(may), func(yes bool) bool { return yes }))
			if !slices.Equal(may, test.may) || asked != test.asked || len(denied) != refused {
				t.Errorf("may use: %v, asked %d times, reported %+v", may, asked, denied)
			}
		})
	}
}

// An answer holds for what the question has shown, and for nothing else. What
// cannot be shown whole is refused.
func TestKeyUses_AnAnswerHoldsForWhatWasShown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", display.MaxText)
	use := func(key, purpose, name string) agent.Use {
		return agent.Use{Key: key, Purpose: purpose, For: name, Comment: func() string { return "" }}
	}
	git := use("k", "to log in as", "git")
	hidden := use("k", "to sign for", strings.Repeat("\x1b", 50))
	for name, test := range map[string]struct {
		first, then agent.Use
		asked       int // about both
	}{
		"the same":              {git, git, 1},
		"another purpose":       {use("k", "to sign for", "git"), git, 2},
		"another user":          {git, use("k", "to log in as", "root"), 2},
		"another key":           {git, use("l", "to log in as", "git"), 2},
		"an unknown purpose":    {use("k", "", ""), git, 2},
		"70 characters":         {use("k", "to sign for", long[:70]), use("k", "to sign for", long[:69]+"b"), 2},
		"too long":              {use("k", "to sign for", long), use("k", "to sign for", long), 0},
		"too long when escaped": {hidden, hidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var shown []string
			u := &keyUses{
				keys: []policy.SigningKey{{Key: "*", Ask: true}}, timeout: time.Minute, answered: map[keyUse]Answer{},
				denied: func(platform.Denial) {},
				ask: func(_ context.Context, d platform.Denial) Answer {
					shown = append(shown, d.Name)
					return AnswerSession
				},
			}
			first, then := u.may(t.Context(), test.first), u.may(t.Context(), test.then)
			if len(shown) != test.asked || first != (test.asked > 0) || then != first {
				t.Errorf("asked %q: %v, %v", shown, first, then)
			}
			for _, text := range shown {
				if strings.Contains(text, "…") {
					t.Errorf("shown: %s", text)
				}
			}
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A program that uses many keys at once gets a bounded number of questions.
func TestKeyUses_QuestionsAreBounded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked, done := make(chan bool), make(chan bool)
	u := &keyUses{
		keys: []policy.SigningKey{{Key: "*", Ask: true}}, timeout: time.Minute, answered: map[keyUse]Answer{},
		denied: func(platform.Denial) {},
		ask: func(ctx context.Context, _ platform.Denial) Answer {
			asked <- true
			<-ctx.Done()
			return AnswerOnce
		},
	}
	use := func(i int) bool {
		return u.may(ctx, agent.Use{Key: fmt.Sprint(i), Comment: func() string { return "" }})
	}
	for i := range maxKeyQuestions {
		go func() { done <- use(i) }()
		<-asked
	}
	if use(99) {
		t.Error("used without an answer")
	}
	cancel()
	for range maxKeyQuestions {
		if <-done {
			t.Error("a yes counts that came after the end")
		}
	}
}
