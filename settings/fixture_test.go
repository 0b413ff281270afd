package settings

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

// fixture is a home directory with a store on it.
type fixture struct {
	t       *testing.T
	home    string
	user    string // the user's Zed file
	own     string // the user's own file
	project string
	changes chan Change
	store   *Store
}

const (
	enabled  = `{"terminal": {"sandbox": {"enabled": true}}}`
	disabled = `{"terminal": {"sandbox": {"enabled": false}}}`
)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{
		t: t, home: home, changes: make(chan Change, 100), project: filepath.Join(home, "project"),
		user: filepath.Join(home, ".config/zed/settings.json"), own: filepath.Join(home,
			".config/sandbox-sidecar/settings.json"),
	}
}

func (d *fixture) write(path, content string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// save replaces the file as editors do.
func (d *fixture) save(path, content string) {
	d.t.Helper()
	d.write(path+".tmp", content)
	d.must(os.Rename(path+".tmp", path))
}

func (d *fixture) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *fixture) open(change func(*Options)) *Store {
	d.t.Helper()
	return d.openWatching(change, source.Watching{})
}

func (d *fixture) openWith(change func(*Options), newWatcher func() (source.Watcher, error)) {
	d.t.Helper()
	d.openWatching(change, source.Watching{NewWatcher: newWatcher})
}

func (d *fixture) openWatching(change func(*Options), with source.Watching) *Store {
	d.t.Helper()
	options := Options{Home: d.home, Platform: "linux", OnChange: func(c Change) { d.changes <- c }}
	if change != nil {
		change(&options)
	}
	store, err := open(options, with)
	d.must(err)
	d.t.Cleanup(func() { store.Close() })
	d.store = store
	return store
}

// await waits until a change of the file is reported.
func (d *fixture) await(file string) {
	d.t.Helper()
	deadline := deadline.After(20 * time.Second)
	for {
		select {
		case c := <-d.changes:
			if slices.Contains(c.Files, file) {
				return
			}
		case <-deadline:
			d.t.Fatalf("no change of %s was reported", file)
		}
	}
}

// armed waits until the watches on all files known so far are in place. A round
// arms the watches before it reports changes. The first report may belong to a
// round that began earlier; the second does not.
func (d *fixture) armed() {
	d.t.Helper()
	dir := filepath.Join(d.home, "armed")
	file := filepath.Join(dir, ".zed/settings.json")
	d.store.Snapshot(dir)
	for _, content := range []string{enabled, disabled} {
		d.write(file, content)
		d.store.Snapshot(dir)
		d.await(file)
	}
}

func (d *fixture) enabled() bool { return *d.store.Snapshot("").Merged().Enabled }
