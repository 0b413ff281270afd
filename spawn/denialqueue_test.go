package spawn

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/handshake"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/platformtest"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

func refused(target string) platform.Denial {
	return platform.Denial{Access: platform.RefusedWrite, Target: target, PID: 7, Process: "p", Count: 1}
}

// collect takes a queue's reports until its end, each with the seconds since
// the beginning.
func collect(q *denialQueue) (stop func() []string) {
	begun := time.Now()
	heard := make(chan []string)
	go func() {
		var list []string
		for d, ok := q.next(); ok; d, ok = q.next() {
			list = append(list, fmt.Sprintf("%gs %s %d+%d", time.Since(begun).Seconds(), d.Target, d.Count, d.Missed))
		}
		heard <- list
	}()
	return func() []string {
		q.end()
		return <-heard
	}
}

func TestDenialQueue_ReportsTheSameDenialLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newDenialQueue(maxDenials)
		stop := collect(q)
		q.put(refused("a"))
		time.Sleep(30 * time.Millisecond) // no two events coincide
		for range 79 {                    // eight seconds
			q.put(refused("a"))
			time.Sleep(100 * time.Millisecond)
		}
		if got, want := stop(), []string{
			"0s a 1+0", "1s a 10+0", "3s a 20+0", "7s a 40+0",
			"7.93s a 9+0",
		}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if all, missed := q.all(); len(all) != 1 || all[0].Count != 80 || missed > 0 {
			t.Errorf("in all %+v, missed %d", all, missed)
		}
		q.put(refused("late"))
		if d, ok := q.next(); ok {
			t.Errorf("reported after the end: %+v", d)
		}
	})
}

func TestDenialQueue_ReportsDifferentDenialsInOrderAtItsPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newDenialQueue(maxDenials)
		stop := collect(q)
		for i := range 60 {
			q.put(refused(fmt.Sprint(i)))
		}
		time.Sleep(1020 * time.Millisecond)
		got := stop()
		want := []string{}
		for i := range 40 {
			at := time.Duration(max(0, i-denialBurst+1)) * denialPace
			want = append(want, fmt.Sprintf("%gs %d 1+0", at.Seconds(), i))
		}
		for i := 40; i < 60; i++ { // in the end
			want = append(want, fmt.Sprintf("1.02s %d 1+0", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
}

func TestDenialQueue_CountsDenialsThatItDoesNotReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newDenialQueue(maxDenials)
		const all = 10 * maxDenials
		for i := range all {
			q.put(refused(fmt.Sprint(i)))
		}
		reports, sum := 0, 0
		q.end()
		for d, ok := q.next(); ok; d, ok = q.next() {
			reports++
			sum += d.Count + d.Missed
			time.Sleep(2 * denialPace) // a slow receiver
		}
		if reports != denialBurst || sum != all {
			t.Errorf("%d reports of %d denials", reports, sum)
		}
		if len(q.entries) > maxDenials {
			t.Errorf("%d are remembered", len(q.entries))
		}
	})
}

// The denial that was silent for longest makes room; one that is not yet
// reported does not.
func TestDenialQueue_EvictsTheDenialThatWasSilentForLongest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newDenialQueue(maxDenials)
		stop := collect(q)
		for i := range maxDenials {
			q.put(refused(fmt.Sprint(i)))
			time.Sleep(denialPace)
		}
		time.Sleep(time.Minute)
		q.put(refused("another"))
		synctest.Wait()
		if _, there := q.entries[denialKey{access: platform.RefusedWrite, target: "0", process: "p"}]; there {
			t.Error("the oldest is still remembered")
		}
		got := stop()
		if last := got[len(got)-1]; len(got) != maxDenials+1 || last[len(last)-len("another 1+0"):] != "another 1+0" {
			t.Errorf("%d are reported, the last is %q", len(got), last)
		}
	})
}

func TestDenialQueue_NilIsEmpty(t *testing.T) {
	t.Parallel()
	var none *denialQueue
	if _, ok := none.next(); ok {
		t.Error("a nil denialQueue reports something")
	}
	if all, missed := none.all(); all != nil || missed != 0 {
		t.Error("a nil denialQueue remembers something")
	}
	none.end()
}

// The number of missed denials comes with the next report.
func TestDenialQueue_ReportsTheNumberOfMissedDenials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newDenialQueue(maxDenials)
		stop := collect(q)
		q.missed = 2
		time.Sleep(time.Second)
		q.put(refused("a"))
		synctest.Wait()
		if got, want := stop(), []string{"1s a 1+2"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// A supervision may report its last denials only when it is closed. The session
// reports them before its end.
func TestSession_ReportsDenialsUntilItsSupervisionIsClosed(t *testing.T) {
	t.Parallel()
	fake := &platformtest.Fake{Passed: []handshake.Passed{platformtest.PassedListener}}
	leader := make(chan int, 1)
	fake.Supervise = func(handover platform.Handover) (platform.Supervision, error) {
		handover.Close()
		leader <- handover.PID
		return lateReportingSupervision{fake}, nil
	}
	s := newFixture(t, fake)
	request := s.line("true")
	request.Policy = policy.Policy{Restricted: true, OnDenied: policy.Report}
	session, err := s.Start(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	if pid := <-leader; pid != session.PID() {
		t.Errorf("the supervision got process %d, and the leader is %d", pid, session.PID())
	}
	r := newRecorder()
	session.Begin(r, nil)
	r.until(t, "the end", func() bool { return r.exit != nil })
	if len(r.denials) != 1 || r.denials[0].Target != "late" {
		t.Errorf("reported %+v", r.denials)
	}
}

// lateReportingSupervision reports a denial when it is closed.
type lateReportingSupervision struct{ fake *platformtest.Fake }

func (s lateReportingSupervision) Close() error {
	hooks := s.fake.Hooks()
	hooks[len(hooks)-1].Denied(refused("late"))
	return nil
}

// What a program prints of a denial that the sandbox has noticed is nothing new,
// whichever comes first.
func TestDenialQueue_OutputAddsNothingToWhatIsKnown(t *testing.T) {
	t.Parallel()
	noticed := platform.Denial{Access: platform.RefusedCreate, Target: "/a", PID: 7, Process: "touch", Count: 1}
	printed := platform.Denial{Access: platform.RefusedCreate, Target: "/a", Count: 1, Source: platform.SourceOutput}
	for name, order := range map[string][]platform.Denial{
		"noticed first": {noticed, printed, printed}, "printed first": {printed, noticed, printed},
	} {
		q := newDenialQueue(maxDenials)
		for _, d := range order {
			q.put(d)
		}
		list, missed := q.all()
		if len(list) != 1 || missed != 0 || list[0].Process != "touch" || list[0].Count != 1 {
			t.Errorf("%s: %+v, missed %d", name, list, missed)
		}
	}
	q := newDenialQueue(maxDenials)
	q.put(printed)
	if d, ok := q.next(); !ok || d.Source != platform.SourceOutput {
		t.Errorf("%+v", d)
	}
	q.put(noticed) // it is reported already
	if list, _ := q.all(); len(list) != 1 || list[0].Count != 2 {
		t.Errorf("%+v", list)
	}
}

// A denial of what the settings grant and the session could not get says why.
func TestDenialQueue_SaysWhatASessionLacks(t *testing.T) {
	t.Parallel()
	q := newDenialQueue(maxDenials)
	q.lacking = []platform.Missing{{Path: "/tmp", Reason: "the disk is full"}}
	for _, target := range []string{"/tmp/a", "/tmpfiles/a"} {
		q.put(platform.Denial{Access: platform.RefusedWrite, Target: target, Count: 1})
	}
	q.end()
	want := map[string]string{"/tmp/a": "the disk is full", "/tmpfiles/a": ""}
	for range want {
		if d, ok := q.next(); !ok || d.Lacking != want[d.Target] {
			t.Errorf("reported: %+v, %t", d, ok)
		}
	}
	list, _ := q.all()
	for _, d := range list {
		if d.Lacking != want[d.Target] {
			t.Errorf("listed: %+v", d)
		}
	}
}
