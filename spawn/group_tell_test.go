package spawn

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// What was refused while no session ran is told to the next one, up to a number, and
// what is beyond that is counted. It takes no place of what happened to protected
// paths.
func TestGroup_CountsWhatItCannotTell(t *testing.T) {
	t.Parallel()
	for name, beyond := range map[string]int{"as many as are kept": 0, "more": 7} {
		p := &policy.Policy{Restricted: true, Project: t.TempDir()}
		g := &Group{spawner: &Spawner{}, running: &running{
			denials: newDenialQueue(maxDenials), log: slog.New(slog.DiscardHandler),
		}}
		for i := range maxUntold + beyond {
			d := platform.Denial{Access: platform.RefusedRead, Target: fmt.Sprintf("/file%d", i), Count: 1}
			(&running{shared: g, log: g.running.log}).denied(d)
		}
		(*groupObserver)(g).Alarm(Alarm{Path: "/alarm"})
		m := &member{running: &running{policy: p}, call: &call{}}
		if err := g.join(m); err != nil {
			t.Fatal(err)
		}
		if list, _ := m.running.denials.all(); len(list) != 0 {
			t.Errorf("%s: %d are reported before the start", name, len(list))
		}
		g.tellWaiting(m)
		list, missed := m.running.denials.all()
		if len(list) != maxUntold || missed != beyond {
			t.Errorf("%s: %d are told and %d counted, want %d and %d", name, len(list), missed, maxUntold, beyond)
		}
		if alarms := m.running.protection.alarms; len(alarms) != 1 {
			t.Errorf("%s: alarms: %+v", name, alarms)
		}
		if g.waiting.more[audit.Refused] != 0 || len(g.waiting.untold) != 0 {
			t.Errorf("%s: the session after that is told again: %+v", name, g.waiting)
		}
	}
}

// Denials that only an audit trail has are counted there beyond the same number.
func TestWaiting_CountsWhatATrailMisses(t *testing.T) {
	t.Parallel()
	var w waiting
	denial := func(i int) platform.Denial {
		return platform.Denial{Access: platform.RefusedRead, Target: fmt.Sprintf("/file%d", i), Count: 1}
	}
	for i := range maxUntold + 7 {
		w.note(denial(i))
	}
	w.note(denial(0)) // it is known
	if len(w.unnoted) != maxUntold || w.unread != 7 {
		t.Errorf("%d wait and %d are counted", len(w.unnoted), w.unread)
	}
}
