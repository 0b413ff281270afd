package settings

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// deaf is a watch that reports nothing.
func deaf() source.Watching {
	return source.Watching{
		NewWatcher: func() (source.Watcher, error) {
			w, err := source.NewSystemWatcher()
			return oddWatcher{Watcher: w, add: func(string) error { return nil }, deaf: true}, err
		},
		Unreliable: func(string) string { return "" },
	}
}

// A denial is answered from the kept evaluation: the settings files are gone
// and reading fails, and the answer stays the same.
func TestLatest_ADenialReadsNoFileAndCompilesNothing(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	d.write(d.project+"/.zed/settings.json", `{"terminal": {"sandbox": {"allow_network": false}}}`)
	store := d.openWatching(nil, deaf())
	store.maxAge = time.Hour
	d.armed()
	snapshot := store.Snapshot(d.project)
	snapshot.Compile(document.KindTool)
	kept := evaluationOf(snapshot)
	store.sources.Close() // or a late round of the watch sees that the files are gone
	d.must(os.RemoveAll(d.project + "/.zed"))
	d.must(os.RemoveAll(d.home + "/.config"))
	snapshot.FS.ReadFile = func(path string) ([]byte, error) {
		t.Errorf("the file %s was read", path)
		return nil, fs.ErrPermission
	}
	snapshot.FS.ReadDir = func(path string) ([]string, error) {
		t.Errorf("the directory %s was read", path)
		return nil, fs.ErrPermission
	}
	lookups, lstat := 0, snapshot.FS.Lstat
	snapshot.FS.Lstat = func(path string) (fs.FileMode, error) { lookups++; return lstat(path) }
	// The first denial looks up all places that programs outside act on.
	accesses := []string{"write", "read", "write", "execute", "create", "remove", "connect", "connect_unix"}
	for i, access := range accesses {
		latest := store.Latest(d.project)
		if latest != snapshot || evaluationOf(latest) != kept {
			t.Fatalf("%s: the settings were read or compiled again", access)
		}
		before := lookups
		suggestion, err := explain.Suggest(latest, document.KindTool, access, "/srv/data/x", "go")
		if err != nil || suggestion.Allowed {
			t.Errorf("%s: %+v, %v", access, suggestion, err)
		}
		most := 100
		if i == 0 {
			most = 1000
		}
		if did := lookups - before; did > most {
			t.Errorf("%s: %d calls of lstat, at most %d", access, did, most)
		}
	}
	s, err := explain.Suggest(store.Latest(d.project), document.KindTool, "connect", "x:1", "")
	if err != nil || s.Allowed {
		t.Errorf("the project's file does not count any more: %+v, %v", s, err)
	}
}

// A change that the store has noticed makes the next denial ask anew.
func TestLatest_FollowsTheFiles(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	store := d.open(nil)
	d.armed()
	if s := store.Latest(""); s != store.Latest("") || !*s.Merged().Enabled {
		t.Error("the snapshot is not kept")
	}
	d.save(d.user, disabled)
	d.await(d.user)
	if *store.Latest("").Merged().Enabled {
		t.Error("an older snapshot is kept")
	}
}

func TestLatest_WithoutAWatchIsNotKept(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	store := d.open(func(o *Options) { o.Once = true })
	store.Latest("")
	d.save(d.user, disabled)
	if *store.Latest("").Merged().Enabled {
		t.Error("an older snapshot is kept")
	}
}

// outsideTmp does not grant the temporary directory, which the homes of tests
// are in.
const outsideTmp = `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []}}}}`

// Nothing reports new credentials, so a snapshot is not kept for long.
func TestLatest_SeesNewCredentials(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, outsideTmp)
	store := d.openWatching(nil, deaf())
	dir := d.home + "/.terraform.d"
	d.write(dir+"/plugins", "")
	suggest := func() string {
		t.Helper()
		s, err := explain.Suggest(store.Latest(""), document.KindTool, "read", dir, "")
		d.must(err)
		return s.Key
	}
	store.maxAge = time.Hour
	if key := suggest(); key != "additional_read_only_paths" {
		t.Fatalf("without credentials %q is suggested", key)
	}
	d.write(dir+"/credentials.tfrc.json", "{}")
	store.maxAge = 0
	if key := suggest(); key != "" {
		t.Errorf("one click would grant credentials: %q is suggested", key)
	}
}

// A program that goes on after "allow always" is not asked about again, even
// before the watch has reported the change.
func TestLatest_FollowsAllow(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, outsideTmp)
	d.write(d.home+"/data/x", "")
	store := d.openWatching(nil, deaf())
	store.maxAge = time.Hour
	ask := func() explain.Suggestion {
		t.Helper()
		s, err := explain.Suggest(store.Latest(""), document.KindTool, "read", d.home+"/data", "")
		d.must(err)
		return s
	}
	d.must(store.Allow(ScopeUser, "", ask()))
	if s := ask(); !s.Allowed {
		t.Errorf("an older snapshot is kept: %+v", s)
	}
}
