package spawn

import (
	"errors"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// A group that was found idle ends only if no session has joined since then.
func TestGroup_RefusesOnlyWhileIdle(t *testing.T) {
	t.Parallel()
	g := &Group{running: &running{}}
	join := func() error { return g.join(&member{running: &running{policy: &policy.Policy{}}}) }
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
