package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/audit"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/review"
	"github.com/sandbox-sidecar/sandbox-sidecar/spawn/record"
)

// noted keeps the kinds of events and what they are about.
type noted struct {
	mu   sync.Mutex
	list []string
}

func (n *noted) Record(_ policy.Audit, event audit.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	about := event.Target
	for _, change := range event.Changed {
		about += filepath.Base(change.Path)
	}
	n.list = append(n.list, event.Event+" "+about)
	return nil
}

// A denial that only an audit trail has takes no place of what is reported, unless
// there is a trail.
func TestGroup_NotesAloneForATrailOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recorder audit.Recorder
		to       policy.Audit
		want     int
	}{
		"a trail":     {&noted{}, policy.Audit{Dir: "/d"}, 1},
		"not wanted":  {&noted{}, policy.Audit{}, 0},
		"no recorder": {nil, policy.Audit{Dir: "/d"}, 0},
	} {
		g := &Group{spawner: &Spawner{Recorder: c.recorder}, running: &running{}}
		g.request.Policy.Audit = c.to
		(&running{shared: g}).noteAlone(platform.Denial{Target: "/file"})
		if len(g.waiting.unnoted) != c.want {
			t.Errorf("%s: %d wait", name, len(g.waiting.unnoted))
		}
	}
}

// What happens after a group's last session is in that one's audit trail, or else
// for who asks.
func TestGroup_NotesTheRest(t *testing.T) {
	t.Parallel()
	for name, trail := range map[string]bool{"with a trail": true, "without": false} {
		dir := t.TempDir()
		p := policy.Policy{Restricted: true, Project: dir}
		g := &Group{spawner: &Spawner{}, running: &running{}, between: review.Take(&p)}
		events := &noted{}
		if trail {
			g.last = record.Begin(events, policy.Audit{Dir: "/d"}, audit.Event{Session: "s"}, func(*audit.Event) {})
			if err := g.last.Acknowledged(); err != nil {
				t.Fatal(err)
			}
			g.last.Ended(0, 0, false, nil)
		}
		g.tell(0, audit.Refused, 1, func(r *running, _ bool) {
			r.heard(platform.Denial{Access: platform.RefusedRead, Target: "/file", Count: 1})
		})
		(*groupObserver)(g).Alarm(Alarm{Path: filepath.Join(dir, "alarm")})
		if err := os.WriteFile(filepath.Join(dir, "Makefile"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		g.noteRest()
		alarms, findings := g.Rest()
		var want []string
		if trail {
			want = []string{"spawn ", "ended ", "refused /file", "review alarm", "review Makefile"}
		}
		if !slices.Equal(events.list, want) {
			t.Errorf("%s: noted %q", name, events.list)
		}
		if trail && len(alarms)+len(findings) > 0 || !trail && (len(alarms) != 1 || len(findings) != 1) {
			t.Errorf("%s: %+v and %+v are left", name, alarms, findings)
		}
	}
}

// A session that was not started leaves to the next one what that is to tell.
func TestGroup_AFailedStartForgetsNoChange(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Restricted: true, Project: t.TempDir()}
	g := &Group{spawner: &Spawner{}, running: &running{}, between: review.Take(p)}
	before := g.between
	m := &member{running: &running{policy: p}, call: &call{}}
	if err := g.join(m); err != nil {
		t.Fatal(err)
	}
	if m.running.protection.before != before || g.between != nil {
		t.Error("control: the session would not tell what has changed")
	}
	g.leave(m)
	if g.between != before {
		t.Error("what has changed before is told by nobody")
	}
}

// What the background does while a command starts is reported, also if that start
// fails.
func TestGroup_AFailedStartBesideTheLastOneForgetsNothing(t *testing.T) {
	t.Parallel()
	p := &policy.Policy{Restricted: true, Project: t.TempDir()}
	g := &Group{spawner: &Spawner{}, running: &running{}}
	join := func(started bool) *member {
		m := &member{running: &running{policy: p}, call: &call{}}
		if err := g.join(m); err != nil {
			t.Fatal(err)
		}
		if started {
			m.call.process = &platform.Call{}
			g.started++
		}
		return m
	}
	first, failing := join(true), join(false)
	g.tell(0, audit.Review, 1, func(*running, bool) {})
	g.leave(first)
	g.leave(failing)
	if g.between == nil {
		t.Fatal("what the first has left is compared with nothing")
	}
	// The state before a failed start is older than the one after the next session.
	before := g.between
	failing = join(false)
	next := join(true)
	g.leave(failing)
	g.leave(next)
	if g.between != before {
		t.Error("no session reports what has changed before the next one")
	}
	// What nobody's process did waits for a command that has started.
	failing = join(false)
	told := 0
	g.tell(0, audit.Review, 1, func(*running, bool) { told++ })
	g.leave(failing)
	if told != 0 {
		t.Error("a session that has not started was told")
	}
	g.tellWaiting(join(true))
	if told != 1 {
		t.Errorf("the next session was told %d times", told)
	}
}

// A group that was unused for long goes on if a session joins before it ends.
func TestGroup_ASessionThatJoinsKeepsIt(t *testing.T) {
	t.Parallel()
	g := &Group{spawner: &Spawner{}, running: &running{}}
	g.unusedLong = true
	if err := g.join(&member{running: &running{}, call: &call{}}); err != nil {
		t.Fatal(err)
	}
	if g.unusedLong {
		t.Error("the group ends with this session")
	}
}
