package spawn

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// fakeWatcher is a watcher whose alarms the test raises. Close raises the last
// one.
type fakeWatcher struct {
	raise  func(platform.Alarm)
	closed int
}

func (l *fakeWatcher) Close() {
	if l.closed++; l.closed == 1 {
		l.raise(platform.Alarm{Kind: platform.AlarmCreated, Path: "last"})
	}
}

func TestProtectionWatch_ReportsEveryAlarmInOrderAndThenEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var watcher fakeWatcher
	w, err := newProtectionWatch(&policy.Policy{Project: dir}, "",
		func(watch platform.Watch) (platform.Watcher, error) {
			watcher.raise = watch.Raise
			return &watcher, nil
		}, nil)
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan []string)
	go func() {
		var paths []string
		for alarm, ok := w.next(); ok; alarm, ok = w.next() {
			paths = append(paths, alarm.Path)
		}
		taken <- paths
	}()
	watcher.raise(platform.Alarm{Path: "first"})
	watcher.raise(platform.Alarm{Path: "second"})
	if err := os.WriteFile(dir+"/Makefile", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.end()
	if findings := w.reviewed(); len(findings) > 0 {
		t.Errorf("before the review: %+v", findings)
	}
	if findings := w.review(false); len(findings) != 1 || findings[0].Path != dir+"/Makefile" {
		t.Errorf("%+v", findings)
	}
	if got := <-taken; !slices.Equal(got, []string{"first", "second", "last"}) {
		t.Errorf("%q", got)
	}
	w.end()
	if findings := w.reviewed(); len(findings) != 1 {
		t.Errorf("after a second end: %+v", findings)
	}
}

func TestProtectionWatch_ReportsFindingsWithoutAWatcher(t *testing.T) {
	t.Parallel()
	failed := errors.New("no more watches")
	w, err := newProtectionWatch(&policy.Policy{Protected: []policy.Protected{{Path: "/no/such"}}}, "",
		func(platform.Watch) (platform.Watcher, error) {
			return nil, failed
		}, nil)
	if !errors.Is(err, failed) || w == nil {
		t.Fatal(err)
	}
	w.end()
	if findings := w.review(false); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
	if alarm, ok := w.next(); ok {
		t.Errorf("%+v", alarm)
	}
	var none *protectionWatch
	none.end()
	if _, ok := none.next(); ok || none.review(false) != nil {
		t.Error("a nil protectionWatch reports something")
	}
}
