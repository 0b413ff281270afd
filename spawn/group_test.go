package spawn

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// A group that was found idle ends only if no session has joined since then.
func TestGroup_RefusesOnlyWhileIdle(t *testing.T) {
	t.Parallel()
	g := &Group{running: &running{}}
	join := func() error { return g.join(&member{running: &running{policy: &policy.Policy{}}, call: &call{}}) }
	if err := join(); err != nil {
		t.Fatal(err)
	}
	g.leave(g.members[0])
	found := g.joined
	if err := join(); err != nil {
		t.Fatal(err)
	}
	if g.refuse(found) || g.Ending() {
		t.Error("a group ends under a session that has just joined")
	}
	if !g.refuse(g.joined) || !errors.Is(join(), ErrGroupEnded) {
		t.Error("control: the group does not end")
	}
	if g.refuse(g.joined) {
		t.Error("it ends twice")
	}
}

// A group that no session has joined yet is not idle: its first one is about to.
// Without that it would refuse it.
func TestGroup_IsNotIdleBeforeItsFirstSession(t *testing.T) {
	t.Parallel()
	g := &Group{running: &running{}}
	if g.RefuseIfIdle() || g.Ending() {
		t.Error("a group that has just started refuses its first session")
	}
	if !g.refuse(0) || !g.Ending() {
		t.Error("control: the group does not end")
	}
}

// A group that no session joins for an hour is retired, not one in which a session
// runs.
func TestGroup_UnusedIsRetired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var retired atomic.Int32
		g := &Group{running: &running{}, unused: time.AfterFunc(unusedTime, func() { retired.Add(1) })}
		after := func(passed time.Duration, want int32) {
			t.Helper()
			time.Sleep(passed)
			synctest.Wait()
			if got := retired.Load(); got != want {
				t.Errorf("after %v: retired %d times, want %d", passed, got, want)
			}
		}
		for range 2 {
			if err := g.join(&member{running: &running{policy: &policy.Policy{}}, call: &call{}}); err != nil {
				t.Fatal(err)
			}
			after(2*unusedTime, 0)
			g.leave(g.members[0])
			after(unusedTime-time.Second, 0)
		}
		after(time.Second, 1)
	})
}

// A command ends with its group only if that ends what runs: not if the group ends
// because nothing runs in it any more, just after its last command was killed.
func TestBackground_EndsWithItsGroup(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		end  func(g *Group)
		want bool
	}{
		"it goes on":                       {func(*Group) {}, false},
		"nothing runs":                     {func(g *Group) { g.refuse(0) }, false},
		"it is to refuse":                  {func(g *Group) { g.Refuse() }, true},
		"it is ended, though nothing runs": {func(g *Group) { g.Refuse(); g.refuse(0) }, true},
	} {
		g := &Group{running: &running{}}
		b := &Background{running: &running{group: &call{shared: g}}}
		one.end(g)
		if got := b.GroupEnded(); got != one.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
