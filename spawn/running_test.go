//go:build unix

package spawn

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// limitingLog is an eventLog whose groups have reached a limit.
type limitingLog struct{ *eventLog }

func (l *limitingLog) NewGroup(string) (lifecycle.Group, error) {
	return &limitingGroup{notedGroup{eventLog: l.eventLog}}, nil
}

type limitingGroup struct{ notedGroup }

func (g *limitingGroup) Limit(lifecycle.Limits, func()) {}

func (g *limitingGroup) Reached() lifecycle.Reached {
	g.note("ask for limits")
	return lifecycle.Reached{Processes: 1}
}

// follower notes the events that it gets.
type follower struct {
	mu      sync.Mutex // guards the fields below
	alarms  []Alarm
	denials []Denial
	limits  []Reached
}

func (f *follower) Alarm(alarm Alarm) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.alarms = append(f.alarms, alarm)
}

func (f *follower) Denied(denial Denial) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.denials = append(f.denials, denial)
}

func (f *follower) Reached(limit Reached) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limits = append(f.limits, limit)
}

// lastMoment is a watch that notices a change only when it is closed.
type lastMoment struct {
	*eventLog
	raise func(platform.Alarm)
	once  sync.Once
}

func (w *lastMoment) Refs([]string) bool { return false }

func (w *lastMoment) Close() {
	w.once.Do(func() {
		w.note("close watch")
		w.raise(platform.Alarm{Path: "/p"})
	})
}

// Every kind of session ends in the same order, and says which limit it has
// reached and what changed last.
func TestEnd_IsOneForAllSessions(t *testing.T) {
	t.Parallel()
	ends := map[string]func(t *testing.T, s *fixture, r Request, told *follower) (limits []Reached, alarms []Alarm){
		"terminal": func(t *testing.T, s *fixture, request Request, told *follower) ([]Reached, []Alarm) {
			t.Helper()
			_, r := s.begin(t, request)
			r.end(t)
			return r.limits, r.alarms
		},
		"background": func(t *testing.T, s *fixture, request Request, _ *follower) ([]Reached, []Alarm) {
			t.Helper()
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer null.Close()
			b, err := s.Background(t.Context(), request, [3]*os.File{null, null, null})
			if err != nil {
				t.Fatal(err)
			}
			<-b.Done()
			if exit, err := b.Exit(); exit != (Exit{Code: 3}) || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
			return b.Limits(), b.Alarms()
		},
		"foreground": func(t *testing.T, s *fixture, request Request, _ *follower) ([]Reached, []Alarm) {
			t.Helper()
			f, err := s.Foreground(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			if exit, err := f.Wait(); exit != (Exit{Code: 3}) || err != nil {
				t.Errorf("%+v, %v", exit, err)
			}
			return f.Limits(), f.Alarms()
		},
		"foreground, followed": func(t *testing.T, s *fixture, request Request, told *follower) ([]Reached, []Alarm) {
			t.Helper()
			f, err := s.Foreground(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			f.Follow(told)
			if _, err := f.Wait(); err != nil {
				t.Error(err)
			}
			if !slices.Equal(f.Alarms(), told.alarms) {
				t.Errorf("alarms: kept %+v, told %+v", f.Alarms(), told.alarms)
			}
			return told.limits, told.alarms
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &eventLog{tracking: subreaper}
			s := newFixture(t, &platformtest.Fake{
				Enforcement: platform.Enforcement{
					Protections: Protections{platform.Limits: {Status: platform.Enforced}},
				},
				Passed: []handshake.Passed{platformtest.PassedListener}, Supervise: d.supervise,
			})
			s.Backend = &watched{Backend: s.Backend, watcher: &lastMoment{eventLog: d}}
			s.Tracker = &limitingLog{d}
			request := s.line("exit 3")
			request.Policy = policy.Policy{Restricted: true, Limits: policy.Limits{Processes: 40}}
			limits, alarms := end(t, s, request, &follower{})
			if want := []Reached{{Key: ProcessesKey, Most: 40}}; !slices.Equal(limits, want) {
				t.Errorf("limits: %+v", limits)
			}
			if len(alarms) != 1 || alarms[0].Path != "/p" {
				t.Errorf("alarms: %+v", alarms)
			}
			want := []string{"kill", "close watch", "close supervision", "ask for limits", "close group"}
			got := slices.DeleteFunc(d.read(), func(entry string) bool { return entry == "signal domain" })
			if !slices.Equal(got, want) {
				t.Errorf("order %q, want %q", got, want)
			}
		})
	}
}

// watched is a backend whose sessions are watched by one watcher.
type watched struct {
	platform.Backend
	watcher *lastMoment
}

func (b *watched) Confine(p *policy.Policy, hooks platform.Hooks) (platform.Confinement, error) {
	confinement, err := b.Backend.Confine(p, hooks)
	confinement.Watch = func(watch platform.Watch) (platform.Watcher, error) {
		b.watcher.raise = watch.Raise
		return b.watcher, nil
	}
	return confinement, err
}
