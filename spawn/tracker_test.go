//go:build unix

package spawn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// eventLog is a tracker that records what happens to a group and its
// supervision, in order. Its groups have the given tracking, and their leaders
// are real.
type eventLog struct {
	tracking  lifecycle.Tracking
	survivors []int
	unguarded error // what Guard returns

	mu      sync.Mutex // guards entries
	entries []string
}

func (d *eventLog) note(entry string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry)
}

func (d *eventLog) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

func (d *eventLog) NewGroup(string) (lifecycle.Group, error) { return &notedGroup{eventLog: d}, nil }
func (d *eventLog) Tracking() lifecycle.Tracking             { return d.tracking }
func (d *eventLog) TemporaryDir(_, _ string) (string, error) {
	return "", errors.New("no directory")
}
func (d *eventLog) Linger(lifecycle.Group) { d.note("linger") }

// supervise is Supervise of a platform.Confinement.
func (d *eventLog) supervise(handover platform.Handover) (platform.Supervision, error) {
	handover.Close()
	return &notedSupervision{eventLog: d}, nil
}

type notedSupervision struct{ *eventLog }

func (s *notedSupervision) Close() error { s.note("close supervision"); return nil }

type notedGroup struct {
	*eventLog
	leader lifecycle.Process
}

func (g *notedGroup) Start(path string, argv []string, attr *os.ProcAttr) (lifecycle.Process, error) {
	var err error
	g.leader, err = lifecycle.Start(path, argv, attr)
	return g.leader, err
}

func (g *notedGroup) Kill(context.Context) (int, error) {
	g.note("kill")
	if g.leader == nil || errors.Is(g.leader.Signal(unix.SIGKILL), os.ErrProcessDone) {
		return 0, nil
	}
	if g.survivors != nil {
		return 1, fmt.Errorf("kill: %w", &lifecycle.Survivors{PIDs: g.survivors})
	}
	return 1, nil
}

func (g *notedGroup) Guard() error { return g.unguarded }

func (g *notedGroup) MakeDir() (string, error) { return "", errors.New("no directory") }
func (g *notedGroup) Close() error             { g.note("close group"); return nil }

func (g *notedGroup) UseSignalDomain() bool {
	if g.tracking.CanUseSignalDomain {
		g.note("signal domain")
	}
	return g.tracking.CanUseSignalDomain
}

var (
	subreaper     = lifecycle.Tracking{Mechanism: lifecycle.MechanismSubreaper, Detail: "d", Fix: "f"}
	domainCapable = lifecycle.Tracking{
		Mechanism: lifecycle.MechanismSubreaper, Detail: "d", Fix: "f", CanUseSignalDomain: true,
	}
)

// A group that can use a signal domain does so before its leader starts, and
// has a guarantee if the session cannot signal.
func TestTracking_HasAGuaranteeInASignalDomain(t *testing.T) {
	t.Parallel()
	signals := func(status platform.Status) platform.Enforcement {
		return platform.Enforcement{Protections: map[string]platform.Protection{platform.Signals: {Status: status}}}
	}
	for name, test := range map[string]struct {
		tracking       lifecycle.Tracking
		enforcement    platform.Enforcement
		unconfined     bool
		inSignalDomain bool
		guarantee      bool
	}{
		"can use a signal domain":    {domainCapable, signals(platform.Enforced), false, true, true},
		"cannot use a signal domain": {subreaper, signals(platform.Enforced), false, false, false},
		"signals degraded":           {domainCapable, signals(platform.Degraded), false, true, false},
		"signals absent":             {domainCapable, signals(platform.Absent), false, true, false},
		"not confined":               {domainCapable, signals(platform.Enforced), true, false, false},
		"cgroup": {
			lifecycle.Tracking{Mechanism: lifecycle.MechanismCgroup, Guarantee: true},
			platform.Enforcement{},
			false, false, true,
		},
		"process group": {
			lifecycle.Tracking{Mechanism: lifecycle.MechanismProcessGroup},
			signals(platform.Enforced),
			false, false, false,
		},
		"cgroup, not confined": {
			lifecycle.Tracking{Mechanism: lifecycle.MechanismCgroup, Guarantee: true},
			platform.Enforcement{},
			true, false, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &eventLog{tracking: test.tracking}
			fake := &platformtest.Fake{
				Enforcement: test.enforcement, Passed: []handshake.Passed{platformtest.PassedListener},
				Supervise: d.supervise,
			}
			s := newFixture(t, fake)
			s.Tracker = d
			request := s.line("exec sleep 1000")
			request.Policy = policy.Policy{Restricted: !test.unconfined}
			session, err := s.Start(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			session.Begin(newRecorder(), nil)
			got := session.Outcome().Tracking
			if got.Guarantee != test.guarantee || got.Mechanism != test.tracking.Mechanism || got.Guarantee &&
				got.Fix != "" {
				t.Errorf("tracking is %+v", got)
			}
			if closed, err := session.Close(t.Context(), 0); err != nil || closed.Killed != 1 || closed.Remaining != 0 {
				t.Errorf("%+v, %v", closed, err)
			}
			want := []string{"kill", "kill", "close supervision", "close group"}
			if test.unconfined {
				want = []string{"kill", "kill", "close group"}
			}
			if test.inSignalDomain {
				want = slices.Insert(want, 0, "signal domain")
			}
			if got := d.read(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// The answer counts the survivors, no second call waits for them, and their
// group is killed in the background instead of being closed.
func TestClose_NamesTheSurvivors(t *testing.T) {
	t.Parallel()
	d := &eventLog{tracking: subreaper, survivors: []int{4711, 4712}}
	s := newFixture(t, &platformtest.Fake{})
	s.Tracker = d
	session, err := s.Start(t.Context(), s.line("exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	session.Begin(r, nil)
	closed, err := session.Close(t.Context(), 0)
	survivors, ok := errors.AsType[*lifecycle.Survivors](err)
	if !ok || !slices.Equal(survivors.PIDs, d.survivors) || closed != (Closed{Killed: 1, Remaining: 2}) {
		t.Errorf("%+v, %v", closed, err)
	}
	r.end(t) // the leader's end is reported all the same
	if got, want := d.read(), []string{"kill", "linger"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// reachedUntilLinger is a group that knows its limits until others have it.
type reachedUntilLinger struct{ notedGroup }

func (g *reachedUntilLinger) Limit(lifecycle.Limits, func()) {}

func (g *reachedUntilLinger) Reached() lifecycle.Reached {
	if slices.Contains(g.read(), "linger") {
		return lifecycle.Reached{}
	}
	return lifecycle.Reached{Processes: 1}
}

type reachedLog struct{ *eventLog }

func (l *reachedLog) NewGroup(string) (lifecycle.Group, error) {
	return &reachedUntilLinger{notedGroup{eventLog: l.eventLog}}, nil
}

// lateReader takes the first bytes only once the session is given up.
type lateReader struct {
	*recorder
	givenUp chan struct{}
}

func (r *lateReader) Output(data []byte) {
	<-r.givenUp
	r.recorder.Output(data)
}

// If processes survive, the last output is still read, and what it says of
// refusals is reported. So is a limit that only the group knew.
func TestEnd_ReportsTheLastRefusalsBesideSurvivors(t *testing.T) {
	t.Parallel()
	for name, survivors := range map[string][]int{"survivors": {4711}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &eventLog{tracking: subreaper, survivors: survivors}
			s := newFixture(t, &platformtest.Fake{
				Enforcement: platform.Enforcement{
					Protections: Protections{platform.Limits: {Status: platform.Enforced}},
				},
				Passed: []handshake.Passed{platformtest.PassedListener}, Supervise: d.supervise,
			})
			s.Tracker = &reachedLog{d}
			request := s.line("echo 'cat: /etc/passwd: Permission denied'; : >said; exec sleep 1000")
			request.Policy = policy.Policy{Restricted: true, Limits: policy.Limits{Processes: 40}}
			session, err := s.Start(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			r := &lateReader{newRecorder(), make(chan struct{})}
			session.Begin(r, []byte("first\n"))
			said := func() bool { _, err := os.Stat(filepath.Join(s.dir, "said")); return err == nil }
			if !deadline.Until(timeout, said) {
				t.Fatal("nothing was printed")
			}
			if err := session.running.kill(); (err != nil) != (survivors != nil) {
				t.Fatal(err)
			}
			close(r.givenUp)
			r.end(t)
			if len(r.denials) != 1 || r.denials[0].Target != "/etc/passwd" {
				t.Errorf("denials: %+v", r.denials)
			}
			if want := []Reached{{Key: ProcessesKey, Most: 40}}; !slices.Equal(r.limits, want) {
				t.Errorf("limits: %+v", r.limits)
			}
		})
	}
}
