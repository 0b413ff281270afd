//go:build unix

package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// TestMain lets this binary be a writer that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_TEST_WRITER"); dir != "" {
		writeUntilKilled(dir, os.Getenv("AUDIT_TEST_NAME"))
	}
	os.Exit(m.Run())
}

const (
	smallFile = 4 << 10
	enough    = 60 // lines; they fill several files
)

// trailDir is a directory that does not exist yet.
func trailDir(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "audit")
}

// sessions are the sessions of a trail, in its order.
func sessions(t *testing.T, dir string) (list []string, torn int) {
	t.Helper()
	torn, err := Read(dir, Filter{}, func(e Event, _ []byte) error {
		list = append(list, e.Session)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, torn
}

func record(t *testing.T, dir, session string) {
	t.Helper()
	trail := &Trail{}
	defer trail.Close(time.Minute)
	if err := trail.Record(policy.Audit{Dir: dir, Required: true}, Event{Event: Spawn, Session: session}); err != nil {
		t.Fatal(err)
	}
}

// What is lost is counted, and the next line says so.
func TestTrail_CountsWhatIsLost(t *testing.T) {
	t.Parallel()
	dir, failures := trailDir(t), 0
	trail := &Trail{Failed: func(error) { failures++ }}
	to := policy.Audit{Dir: dir}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // no directory can be made here
		t.Fatal(err)
	}
	for range 3 {
		if err := trail.Record(to, Event{Event: Ended}); err != nil {
			t.Errorf("it is required: %v", err)
		}
	}
	required := to
	required.Required = true
	if err := trail.Record(required, Event{Event: Spawn}); !errors.Is(err, ErrLost) { // after the others
		t.Errorf("%v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(to, Event{Event: Ended}); err != nil {
		t.Error(err)
	}
	trail.Close(time.Minute)
	var lost []int
	count := func(e Event, _ []byte) error {
		lost = append(lost, e.Lost)
		return nil
	}
	if _, err := Read(dir, Filter{}, count); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(lost, []int{3}) || failures != 1 {
		t.Errorf("lost %v, told %d times", lost, failures)
	}
}

// Flush waits for the lines before it, also for one that would be held, and Losses
// counts those that were lost. Nothing is waited for where nothing was recorded.
func TestTrail_Flush(t *testing.T) {
	t.Parallel()
	dir := trailDir(t)
	trail := &Trail{}
	trail.Flush(time.Hour)
	to := policy.Audit{Dir: dir}
	for _, event := range []string{Spawn, Started} {
		if err := trail.Record(to, Event{Event: event, Session: event}); err != nil {
			t.Fatal(err)
		}
	}
	trail.Flush(time.Minute)
	if list, torn := sessions(t, dir); len(list) != 2 || torn > 0 {
		t.Errorf("written %q, %d torn", list, torn)
	}
	if lost, why := trail.Losses(); lost != 0 || why != nil {
		t.Errorf("control: %d lines were lost: %v", lost, why)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil { // no directory can be made here
		t.Fatal(err)
	}
	for range 3 {
		if err := trail.Record(policy.Audit{Dir: file}, Event{Event: Ended}); err != nil {
			t.Errorf("it is required: %v", err)
		}
	}
	trail.Flush(time.Minute)
	if lost, why := trail.Losses(); lost != 3 || why == nil {
		t.Errorf("%d lines were lost: %v", lost, why)
	}
	trail.Close(time.Minute)
	trail.Flush(time.Hour)
}

// TestTrail_TheJournal gets the same line.
func TestTrail_TheJournal(t *testing.T) {
	t.Parallel()
	var got [][]byte
	trail := &Trail{Via: "exec", journal: func(_ Event, line []byte) error { got = append(got, line); return nil }}
	if err := trail.Record(policy.Audit{Journal: true}, Event{Event: Trusted, Project: "/p"}); err != nil {
		t.Fatal(err)
	}
	trail.Close(time.Minute)
	var event Event
	if len(got) != 1 || json.Unmarshal(got[0], &event) != nil || event.Project != "/p" || event.UID != os.Getuid() {
		t.Errorf("%s", got)
	}
}

// TestTrail_AStartWaits shows that a Started line waits for a moment, is written
// without another one too, and that no line overtakes it.
func TestTrail_AStartWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var written []string
		took := func(want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(written, want) {
				t.Errorf("written are %q, want %q", written, want)
			}
			written = nil
		}
		trail := &Trail{journal: func(e Event, _ []byte) error {
			mu.Lock()
			defer mu.Unlock()
			written = append(written, e.Session+" "+e.Event)
			return nil
		}}
		record := func(session, event string) {
			_ = trail.Record(policy.Audit{Journal: true}, Event{Session: session, Event: event})
		}
		record("a", Spawn)
		record("a", Started)
		took("a spawn")
		time.Sleep(startedDelay)
		took("a started")
		record("b", Started)
		record("c", Started)
		record("d", Spawn)
		took("b started", "c started", "d spawn")
		record("d", Started)
		trail.Close(time.Second)
		took("d started")
	})
}

// A session that makes many lines leaves the others room. Its recorder learns
// that there is none left for it, and holds its lines. The control is another
// session, and the line of its end.
func TestTrail_ASessionHasAShare(t *testing.T) {
	t.Parallel()
	release, written := make(chan struct{}), make(map[string]int)
	trail := &Trail{journal: func(e Event, _ []byte) error {
		<-release
		written[e.Session]++
		return nil
	}}
	to := policy.Audit{Journal: true}
	taken := 0
	for range maxQueued {
		if err := trail.Record(to, Event{Event: Refused, Session: "many", Target: "x"}); err == nil {
			taken++
		} else if !errors.Is(err, ErrShare) {
			t.Fatal(err)
		}
	}
	if taken != maxShare {
		t.Errorf("%d lines wait, want %d", taken, maxShare)
	}
	for _, e := range []Event{{Event: Ended, Session: "many"}, {Event: Refused, Session: "other", Target: "x"}} {
		if err := trail.Record(to, e); err != nil {
			t.Errorf("%s of %s: %v", e.Event, e.Session, err)
		}
	}
	close(release)
	trail.Close(time.Minute)
	if written["many"] != maxShare+1 || written["other"] != 1 {
		t.Errorf("written: %v", written)
	}
	if len(trail.queued) != 0 {
		t.Errorf("still counted: %v", trail.queued)
	}
}

// Without arguments the line has the program alone. The control is the other
// place, to which the same event goes with them.
func TestTrail_ProgramOnly(t *testing.T) {
	t.Parallel()
	var got []Event
	trail := &Trail{journal: func(e Event, _ []byte) error { got = append(got, e); return nil }}
	event := Event{Event: Spawn, Program: "/bin/echo", Argv: []string{"echo", "argument"}}
	for _, only := range []bool{true, false} {
		if err := trail.Record(policy.Audit{Journal: true, ProgramOnly: only}, event); err != nil {
			t.Fatal(err)
		}
	}
	trail.Close(time.Minute)
	if len(got) != 2 || got[0].Argv != nil || got[0].Program == "" || len(got[1].Argv) != 2 {
		t.Errorf("%+v", got)
	}
	if text := Describe(got[0]); !strings.Contains(text, "/bin/echo") {
		t.Errorf("described as %q", text)
	}
}
