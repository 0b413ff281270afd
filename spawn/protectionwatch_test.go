package spawn

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
)

// fakeWatcher is a watcher whose alarms the test raises. Close raises the last
// one.
type fakeWatcher struct {
	raise  func(platform.Alarm)
	closed int
	refs   []string
}

func (l *fakeWatcher) Refs(dirs []string) bool {
	before := len(l.refs)
	for _, dir := range dirs {
		if !slices.Contains(l.refs, dir) {
			l.refs = append(l.refs, dir)
		}
	}
	return len(l.refs) > before
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

// What git holds is compared when something was touched: each path is reported
// once, new directories of refs are watched, and nothing is while the session has
// written nothing. The end waits for no comparison.
func TestProtectionWatch_ReportsWhatGitStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(line string) {
		t.Helper()
		command := exec.Command("/bin/sh", "-ec", line)
		command.Dir = dir
		command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
			"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	git("git init -q .; echo x >file; git add .; git commit -qm first")
	store := func(name, ref string) {
		git("export GIT_INDEX_FILE=$PWD/.git/more; git read-tree HEAD; git update-index --add --cacheinfo " +
			"100644,$(echo evil | git hash-object -w --stdin)," + name + "; git update-ref refs/heads/" + ref +
			" $(echo m | git commit-tree -p HEAD $(git write-tree))")
	}
	var watcher fakeWatcher
	looking <- struct{}{} // only this test looks
	defer func() { <-looking }()
	p := &policy.Policy{
		Project: dir, Rules: []policy.Rule{{Path: dir, Access: policy.ReadWrite}},
		Protected: []policy.Protected{{Path: dir + "/.envrc"}, {Path: dir + "/.vscode"}},
	}
	w, err := newProtectionWatch(p, "", func(watch platform.Watch) (platform.Watcher, error) {
		watcher.raise, watcher.refs = watch.Raise, watch.Refs
		return &watcher, nil
	}, nil)
	if err != nil || !slices.Contains(watcher.refs, dir+"/.git/refs/heads") {
		t.Fatalf("%v: %q", err, watcher.refs)
	}
	nothing := true
	raised := map[string]bool{}
	look := func() (paths []string) {
		w.lookAtStored(raised)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, alarm := range w.alarms {
			if alarm.Kind != platform.AlarmStored || alarm.Why == "" {
				t.Errorf("%+v", alarm)
			}
			paths = append(paths, strings.TrimPrefix(alarm.Path, dir+"/"))
		}
		w.alarms = nil
		return paths
	}
	store(".envrc", "one")
	w.suspect(func() bool { return nothing })
	for _, test := range []struct {
		act  func()
		want []string
	}{
		{func() {}, nil}, // the session has written nothing
		{func() { nothing = false }, []string{".envrc"}},
		{func() { store(".envrc", "two") }, nil},
		{func() { store("pyproject.toml", "three") }, nil},
		{func() { store(".vscode/tasks.json", "deep/four") }, []string{".vscode/tasks.json"}},
	} {
		test.act()
		if got := look(); !slices.Equal(got, test.want) {
			t.Errorf("reported %q, want %q", got, test.want)
		}
	}
	if !slices.Contains(watcher.refs, dir+"/.git/refs/heads/deep") {
		t.Errorf("a new directory is not watched: %q", watcher.refs)
	}
	w.touch()
	w.end() // although another session looks
	if _, dirs := w.before.Stored(w.stop, nil); len(dirs) > 0 {
		t.Errorf("after the end it looks: %q", dirs)
	}
}
