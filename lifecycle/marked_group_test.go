//go:build unix

package lifecycle

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc"
	"github.com/sandbox-sidecar/sandbox-sidecar/lifecycle/proc/proctest"
)

// towns are processes of a user, of which some carry a fingerprint.
type towns struct {
	table   []proc.Entry
	marked  map[int]bool
	unknown map[int]bool
	asked   []int
}

func (w *towns) group() *markedGroup {
	return &markedGroup{
		sessionGroup: sessionGroup{tracking: Tracking{Mechanism: MechanismDescent, Detail: "by descent"}},
		fingerprint:  SessionFingerprint{ID: "1"},
		carries: func(f SessionFingerprint, pid int) (bool, error) {
			w.asked = append(w.asked, pid)
			if f.ID != "1" {
				return false, errors.New("another fingerprint is asked for")
			}
			if w.unknown[pid] {
				return false, ErrUnknown
			}
			return w.marked[pid], nil
		},
		table: func() ([]proc.Entry, error) { return w.table, nil },
	}
}

func entry(pid, parent, session int) proc.Entry {
	return proc.Entry{ID: proc.ID{PID: pid, Birth: uint64(pid)}, Parent: parent, Session: session}
}

// seen is one scan of a kill loop without extra scans.
func seen(g *markedGroup, sid int) (pids []int, err error) {
	(&search{group: g, sid: sid}).scan(func(p proc.ID, failure error) bool {
		if failure != nil {
			err = failure
			return true
		}
		pids = append(pids, p.PID)
		return true
	})
	return pids, err
}

func TestMarkedGroup_FindsByMarkSessionAndDescent(t *testing.T) {
	t.Parallel()
	const base = 1 << 28 // numbers that no process has
	zombie := entry(base+6, 1, base+1)
	zombie.Dead = true
	w := &towns{
		table: []proc.Entry{
			entry(1, 0, 1), entry(os.Getpid(), 1, 1),
			entry(base+1, 1, base+1), // the leader
			entry(base+2, 1, base+2), // a daemon that carries the mark
			entry(base+3, base+2, 1), // the daemon's child, about which the kernel knows nothing yet
			entry(base+4, 1, base+4), // an unrelated process
			entry(base+5, base+1, 9), // the leader's child
			zombie,
		},
		marked: map[int]bool{base + 1: true, base + 2: true, 1: true, os.Getpid(): true, base + 6: true},
	}
	pids, err := seen(w.group(), base+1)
	slices.Sort(pids)
	if want := []int{base + 1, base + 2, base + 5}; err != nil || !slices.Equal(pids, want) {
		t.Errorf("seen %v, want %v; %v", pids, want, err)
	}
	if slices.Contains(w.asked, 1) || slices.Contains(w.asked, os.Getpid()) || slices.Contains(w.asked, base+6) {
		t.Errorf("asked about init, itself or a zombie: %v", w.asked)
	}
	// After a crash no session id is known.
	if pids, err := seen(w.group(), 0); err != nil || !slices.Equal(pids, []int{base + 2, base + 1}) {
		t.Errorf("seen %v; %v", pids, err)
	}
	v := newVillage()
	for _, pid := range []int{base + 1, base + 2, base + 4} {
		v.forkAs(pid, 0)
	}
	v.forkAs(base+3, base+2)
	g := w.group()
	g.ancestry = newAncestry(v.identify, v.alive[base+2].self)
	if pids, err := seen(g, 0); err != nil || !slices.Equal(pids, []int{base + 2, base + 1, base + 3}) {
		t.Errorf("seen %v; %v", pids, err)
	}
}

// A session has not ended while there are processes about which the system does
// not answer.
func TestMarkedGroup_AnUnansweredQuestionIsNoEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		self := os.Getppid() // a process that exists
		w := &towns{table: []proc.Entry{entry(self, 1, 1)}, unknown: map[int]bool{self: true}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.group().killLoop(0).Run(ctx); !errors.Is(err, ErrUnknown) || !errors.Is(err, proc.ErrSurvivors) {
			t.Errorf("error is %v", err)
		}
		// The system does not answer about an ended process either, and that is
		// an end. But another scan must confirm it, because another process may
		// have taken its place.
		gone := 1 << 28
		w = &towns{table: []proc.Entry{entry(gone, 1, 1)}, unknown: map[int]bool{gone: true}}
		if killed, err := w.group().killLoop(0).Run(t.Context()); err != nil || len(killed) > 0 {
			t.Errorf("killed %v, %v", killed, err)
		}
		if scans := len(w.asked); scans != mostChases+2 {
			t.Errorf("%d scans, want %d and two that count as empty", scans, mostChases)
		}
	})
}

func TestMarkedGroup_GuaranteesOnlyAfterRecognition(t *testing.T) {
	t.Parallel()
	const leader = 1 << 28
	for name, test := range map[string]struct {
		marked  []int
		unknown []int
		proved  bool
	}{
		"as it must be":                     {[]int{leader}, nil, true},
		"nothing is recognised":             {nil, nil, false},
		"everything is recognised":          {[]int{leader, os.Getpid()}, nil, false},
		"the wrong way round":               {[]int{os.Getpid()}, nil, false},
		"no answer about the leader":        {nil, []int{leader}, false},
		"no answer about anybody unmarked":  {[]int{leader}, []int{os.Getpid()}, false},
		"a call that reads arguments wrong": {nil, []int{leader, os.Getpid()}, false},
	} {
		w := &towns{marked: map[int]bool{}, unknown: map[int]bool{}}
		for _, pid := range test.marked {
			w.marked[pid] = true
		}
		for _, pid := range test.unknown {
			w.unknown[pid] = true
		}
		g := w.group()
		g.sid = leader
		if before := g.Tracking(); before.Guarantee || before.Mechanism != MechanismDescent {
			t.Errorf("%s: before the proof: %+v", name, before)
		}
		err := g.Recognise()
		after := g.Tracking()
		switch {
		case test.proved != (err == nil), test.proved != after.Guarantee,
			test.proved != (after.Mechanism == MechanismSeatbelt):
			t.Errorf("%s: %v, %+v", name, err, after)
		case !test.proved &&
			(!strings.Contains(after.Detail, err.Error()) || !strings.Contains(after.Detail, "by descent")):
			t.Errorf("%s: the detail does not say why: %q", name, after.Detail)
		}
	}
}

func TestMarkedGroup_StartFollowsTheLeader(t *testing.T) {
	t.Parallel()
	g := (&towns{}).group()
	lost := errors.New("unknown")
	g.ancestry = newAncestry(func(int) (processIdentity, error) { return processIdentity{}, lost })
	process, err := g.Start("/bin/sleep", []string{"sleep", "60"},
		&os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}})
	if !errors.Is(err, lost) || process != nil {
		t.Errorf("%v, %v", process, err)
	}
	if g.sid == 0 || proctest.Running(g.sid) {
		t.Errorf("the leader %d runs although it cannot be followed", g.sid)
	}
	stopped := false
	g.ancestry.stop = func() { stopped = true }
	if err := g.Close(); err != nil || !stopped {
		t.Errorf("closed with %v; the scans have ended: %t", err, stopped)
	}
}
