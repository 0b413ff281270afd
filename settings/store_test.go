package settings

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// desk is a home directory with a store on it.
type desk struct {
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

func newDesk(t *testing.T) *desk {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &desk{
		t: t, home: home, changes: make(chan Change, 100), project: filepath.Join(home, "project"),
		user: filepath.Join(home, ".config/zed/settings.json"), own: filepath.Join(home, ".config/sandbox-sidecar/settings.json"),
	}
}

func (d *desk) write(path, content string) {
	d.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// save replaces the file as editors do.
func (d *desk) save(path, content string) {
	d.t.Helper()
	d.write(path+".tmp", content)
	d.must(os.Rename(path+".tmp", path))
}

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) open(change func(*Options)) *Store {
	d.t.Helper()
	return d.openWith(change, fsnotify.NewWatcher)
}

func (d *desk) openWith(change func(*Options), newWatcher func() (*fsnotify.Watcher, error)) *Store {
	d.t.Helper()
	options := Options{Home: d.home, Platform: "linux", OnChange: func(c Change) { d.changes <- c }}
	if change != nil {
		change(&options)
	}
	store, err := open(options, newWatcher)
	d.must(err)
	d.t.Cleanup(func() { store.Close() })
	d.store = store
	return store
}

// await waits until a change of the file has been told.
func (d *desk) await(file string) {
	d.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case c := <-d.changes:
			if slices.Contains(c.Files, file) {
				return
			}
		case <-deadline:
			d.t.Fatalf("no change of %s was told", file)
		}
	}
}

// armed waits until the watches on what the store knows by now are in place: the round that arms them runs on the goroutine that
// answers the poke, so a change made by the test itself is told only after it.
func (d *desk) armed() {
	d.t.Helper()
	marker := filepath.Join(d.home, ".config/zed/armed.json")
	d.store.mu.Lock()
	source := newSource(marker, "linux")
	d.store.sources[marker] = source
	d.store.dirty[marker] = true
	d.store.mu.Unlock()
	d.store.poke()
	d.await(marker)
}

func (d *desk) enabled() bool { return *d.store.Snapshot("").Merged().Enabled }

func TestStore_LayersAndOrigins(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "apply_to": "tool", "additional_read_only_paths": ["/a", "/b"], "system_paths": {"executable": ["/x"], "read_only": ["/y"]}}}}`)
	d.write(d.own, `{"terminal": {"sandbox": {"additional_read_only_paths": ["/c"], "system_paths": {"read_only": []}}}}`)
	project := filepath.Join(d.project, ".zed/settings.json")
	d.write(project, `{"terminal": {"sandbox": {"allow_network": false}}}`)
	s := d.open(func(o *Options) {
		o.Editor = []byte(`{"terminal": {"sandbox": {"apply_to": "both", "enabled": null, "typo": 1}}}`)
	}).Snapshot(d.project)
	merged, origins := s.Merged(), s.Origins()
	if !*merged.Enabled || *merged.ApplyTo != ApplyToBoth || *merged.AllowNetwork || !slices.Equal(merged.AdditionalReadOnlyPaths, []string{"/c"}) ||
		!slices.Equal(merged.SystemPaths.Executable, []string{"/x"}) || merged.SystemPaths.ReadOnly == nil || len(merged.SystemPaths.ReadOnly) != 0 ||
		merged.SystemPaths.ReadWrite != nil || merged.ProtectedPaths != nil || merged.OnUnavailable != nil {
		t.Errorf("merged: %+v %+v", merged, merged.SystemPaths)
	}
	for key, want := range map[string]string{
		"enabled": d.user, "apply_to": "editor", "additional_read_only_paths": d.own, "system_paths.executable": d.user,
		"system_paths.read_only": d.own, "system_paths.read_write": "built-in defaults", "allow_network": project, "toolchains": "built-in defaults",
	} {
		if origins[key] != want {
			t.Errorf("origin of %s: %s, want %s", key, origins[key], want)
		}
	}
	if got := s.Files(); !slices.Equal(got, []string{d.user, d.own, "editor", project}) {
		t.Errorf("files: %q", got)
	}
	if got := s.DiagnosticsOf("editor"); len(got) != 1 || got[0].Key != "typo" {
		t.Errorf("editor's diagnostics: %v", got)
	}
	// What a caller does to its copy is its own business.
	*merged.Enabled, merged.AdditionalReadOnlyPaths[0] = false, "/z"
	if again := s.Merged(); !*again.Enabled || again.AdditionalReadOnlyPaths[0] != "/c" {
		t.Error("Merged shares memory with the snapshot")
	}
}

func TestOpen_Options(t *testing.T) {
	t.Parallel()
	for _, options := range []Options{{UserPath: "settings.json"}, {Platform: "plan9"}} {
		if store, err := Open(options); err == nil {
			store.Close()
			t.Errorf("%+v is accepted", options)
		}
	}
	home := newDesk(t).home
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"home from the environment":      {Options{Env: []string{"HOME=" + home}}, []string{home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json"}},
		"XDG_CONFIG_HOME":                {Options{Home: home, Env: []string{"XDG_CONFIG_HOME=" + home + "/x"}}, []string{home + "/x/zed/settings.json", home + "/x/sandbox-sidecar/settings.json"}},
		"a relative XDG_CONFIG_HOME":     {Options{Home: home, Env: []string{"XDG_CONFIG_HOME=x"}}, []string{home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json"}},
		"a path replaces both files":     {Options{Home: home, UserPath: home + "/my.json"}, []string{home + "/my.json"}},
		"the editor's layer comes last":  {Options{Home: home, UserPath: home + "/my.json", Editor: []byte("{}")}, []string{home + "/my.json", "editor"}},
		"a project dir must be absolute": {Options{Home: home, UserPath: home + "/my.json"}, []string{home + "/my.json"}},
	} {
		store, err := Open(test.options)
		if err != nil {
			t.Fatal(err)
		}
		if got := store.Snapshot("relative").Files(); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSnapshot_SeesASaveAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, disabled)
	// Without any notification: the snapshot itself has to look.
	d.openWith(nil, func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE })
	for i := range 50 {
		content := []string{enabled, disabled}[i%2]
		if i%3 == 0 {
			d.write(d.user, content)
		} else {
			d.save(d.user, content)
		}
		if d.enabled() != (content == enabled) {
			t.Fatalf("save %d is not seen", i)
		}
	}
	project := filepath.Join(d.project, ".zed/settings.json")
	if !*d.store.Snapshot(d.project).Merged().AllowNetwork {
		t.Fatal("network is off without a project file")
	}
	d.write(project, `{"terminal": {"sandbox": {"allow_network": false}}}`)
	if *d.store.Snapshot(d.project).Merged().AllowNetwork {
		t.Error("a new project file is not seen")
	}
}

func TestSnapshot_UnusableFileKeepsTheLastGoodContent(t *testing.T) {
	t.Parallel()
	breakages := map[string]struct {
		breakFile func(d *desk)
		says      string
	}{
		"syntax":    {func(d *desk) { d.write(d.user, "{\n  oops") }, "2:3: error: not valid JSON"},
		"UTF-8":     {func(d *desk) { d.write(d.user, "{\"a\": \"\xff\"}") }, "1:8: error: not valid UTF-8"},
		"array":     {func(d *desk) { d.write(d.user, "[]") }, "expected an object"},
		"FIFO":      {func(d *desk) { d.must(os.Remove(d.user)); d.must(syscall.Mkfifo(d.user, 0o644)) }, "not a regular file"},
		"directory": {func(d *desk) { d.must(os.Remove(d.user)); d.must(os.Mkdir(d.user, 0o755)) }, "not a regular file"},
		"huge":      {func(d *desk) { d.must(os.Truncate(d.user, 100<<20)) }, "larger than 4 MiB"},
		"deep":      {func(d *desk) { d.write(d.user, strings.Repeat("[", 4_000_000)) }, "nested deeper"},
		"dangling":  {func(d *desk) { d.must(os.Remove(d.user)); d.must(os.Symlink("nowhere", d.user)) }, "symlink to a file that does not exist"},
		"loop":      {func(d *desk) { d.must(os.Remove(d.user)); d.must(os.Symlink("settings.json", d.user)) }, "cannot read"},
		"device":    {func(d *desk) { d.must(os.Remove(d.user)); d.must(os.Symlink("/dev/zero", d.user)) }, "not a regular file"},
	}
	for name, breakage := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write(d.user, enabled)
			d.open(nil)
			if !d.enabled() {
				t.Fatal("not enabled")
			}
			breakage.breakFile(d)
			s := d.store.Snapshot("")
			if !*s.Merged().Enabled {
				t.Error("the last good content is lost")
			}
			if got := s.DiagnosticsOf(d.user); len(got) != 1 || !strings.Contains(got[0].String(), breakage.says) {
				t.Errorf("diagnostics %v, want %q", got, breakage.says)
			}
			if got := strings.Join(s.Compile(KindTool).Warnings, "\n"); !strings.Contains(got, "last good content counts") {
				t.Errorf("warnings: %s", got)
			}
			if _, unreadable := s.Unreadable(); unreadable {
				t.Error("counts as never readable")
			}
			d.must(os.RemoveAll(d.user))
			d.write(d.user, disabled)
			if s := d.store.Snapshot(""); *s.Merged().Enabled || len(s.Diagnostics()) != 0 {
				t.Errorf("the repaired file does not count: %v", s.Diagnostics())
			}

			// The same file at start-up: nobody knows what it asks for.
			d.must(os.Remove(d.user))
			d.write(d.user, enabled)
			breakage.breakFile(d)
			fresh := newDesk(t)
			fresh.home, fresh.user = d.home, d.user
			s = fresh.open(nil).Snapshot("")
			if got, unreadable := s.Unreadable(); !unreadable || got.File != d.user || !strings.Contains(got.Message+got.String(), breakage.says) {
				t.Errorf("unreadable %t: %v", unreadable, got)
			}
		})
	}
}

func TestSnapshot_RemarksOnOlderContentAreNotGivenForABrokenFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "typo": 1, "additional_read_only_paths": ["relative"]}}}`)
	d.open(nil)
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 2 {
		t.Errorf("diagnostics: %v", got)
	}
	d.write(d.user, "{")
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 1 || !strings.Contains(got[0].Message, "not valid JSON") {
		t.Errorf("diagnostics of the broken file: %v", got)
	}
	d.write(d.user, "{}")
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 0 {
		t.Errorf("diagnostics of the repaired file: %v", got)
	}
}

func TestSnapshot_FileWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	d := newDesk(t)
	d.write(d.user, enabled)
	d.open(nil)
	d.must(os.Chmod(d.user, 0))
	s := d.store.Snapshot("")
	if !*s.Merged().Enabled || len(s.Diagnostics()) != 1 || !strings.Contains(s.Diagnostics()[0].Message, "permission denied") {
		t.Errorf("enabled %t, diagnostics %v", *s.Merged().Enabled, s.Diagnostics())
	}
}

func TestSnapshot_DeletedFileIsAbsent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, enabled)
	d.open(nil)
	d.must(os.Remove(d.user))
	if d.enabled() {
		t.Error("the deleted file still counts")
	}
	if s := d.store.Snapshot(""); len(s.Diagnostics()) != 0 {
		t.Errorf("diagnostics: %v", s.Diagnostics())
	}
}

func TestSnapshot_GapWithinASaveIsNotSeen(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]func(d *desk){
		"moved away": func(d *desk) { d.must(os.Rename(d.user, d.user+"~")) },
		"truncated":  func(d *desk) { d.must(os.Truncate(d.user, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.write(d.user, enabled)
			// In the bubble time stands still while files are read and written, however slow the machine is.
			synctest.Test(t, func(t *testing.T) {
				source := newSource(d.user, "linux")
				source.refresh()
				gap(d)
				time.AfterFunc(settleTime/2, func() { d.write(d.user, enabled+" ") })
				if !source.refresh() || source.state.good == nil || source.state.good.values.Enabled == nil {
					t.Error("the settings were gone for a moment")
				}
				gap(d)
				if !source.refresh() || source.state.good != nil && len(source.state.good.where) > 0 {
					t.Error("a file that stays away or empty still counts")
				}
			})
		})
	}
}

func TestSnapshot_UnchangedFilesAreNotReadAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, enabled)
	old := time.Now().Add(-time.Hour)
	d.must(os.Chtimes(d.user, old, old))
	source := newSource(d.user, "linux")
	source.refresh()
	// The change time cannot be set back, so the clock of the test is: an hour-old file is not racy.
	source.racy = false
	before := source.state.good
	if source.refresh() || source.state.good != before {
		t.Error("an unchanged file counts as changed")
	}
	d.save(d.user, disabled)
	d.must(os.Chtimes(d.user, old, old))
	if !source.refresh() {
		t.Error("another file with the same times is not seen")
	}
}

func TestWatch_TellsEveryKindOfChange(t *testing.T) {
	t.Parallel()
	dotfiles := func(d *desk) string { return filepath.Join(d.home, "dotfiles/zed.json") }
	tests := map[string]struct{ before, change func(d *desk) }{
		"written in place":                   {func(d *desk) { d.write(d.user, disabled) }, func(d *desk) { d.write(d.user, enabled) }},
		"replaced by a rename":               {func(d *desk) { d.write(d.user, disabled) }, func(d *desk) { d.save(d.user, enabled) }},
		"created in a directory that exists": {func(d *desk) { d.must(os.MkdirAll(filepath.Dir(d.user), 0o755)) }, func(d *desk) { d.write(d.user, enabled) }},
		"created with its directories":       {func(*desk) {}, func(d *desk) { d.write(d.user, enabled) }},
		"directory deleted and recreated": {func(d *desk) { d.write(d.user, disabled) }, func(d *desk) {
			d.must(os.RemoveAll(filepath.Join(d.home, ".config")))
			d.await(d.user)
			d.write(d.user, enabled)
		}},
		"directory renamed and another in its place": {func(d *desk) { d.write(d.user, disabled) }, func(d *desk) {
			d.must(os.Rename(filepath.Join(d.home, ".config"), filepath.Join(d.home, "old")))
			d.await(d.user)
			d.write(d.user, enabled)
		}},
		"target of a symlink": {func(d *desk) {
			d.write(dotfiles(d), disabled)
			d.must(os.MkdirAll(filepath.Dir(d.user), 0o755))
			d.must(os.Symlink("../../dotfiles/zed.json", d.user))
		}, func(d *desk) { d.save(dotfiles(d), enabled) }},
		"symlinked directory": {func(d *desk) {
			d.write(filepath.Join(d.home, "dotfiles/zed/settings.json"), disabled)
			d.must(os.MkdirAll(filepath.Join(d.home, ".config"), 0o755))
			d.must(os.Symlink("../dotfiles/zed", filepath.Join(d.home, ".config/zed")))
		}, func(d *desk) { d.save(filepath.Join(d.home, "dotfiles/zed/settings.json"), enabled) }},
		"symlink pointed elsewhere": {func(d *desk) {
			d.write(dotfiles(d), disabled)
			d.write(dotfiles(d)+".2", enabled)
			d.must(os.MkdirAll(filepath.Dir(d.user), 0o755))
			d.must(os.Symlink(dotfiles(d), d.user))
		}, func(d *desk) {
			d.must(os.Symlink(dotfiles(d)+".2", d.user+".tmp"))
			d.must(os.Rename(d.user+".tmp", d.user))
		}},
	}
	for name, test := range tests {
		for mode, newWatcher := range map[string]func() (*fsnotify.Watcher, error){
			"watched": fsnotify.NewWatcher,
			"polled":  func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE },
		} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				d := newDesk(t)
				test.before(d)
				d.openWith(nil, newWatcher)
				d.armed()
				test.change(d)
				for !d.enabled() {
					d.await(d.user)
				}
				// The snapshot may have been first to see the change; it is told all the same.
				d.await(d.user)
			})
		}
	}
}

func TestWatch_AProjectIsWatchedFromItsFirstSnapshotOn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must(os.Mkdir(d.project, 0o755))
	d.open(nil).Snapshot(d.project)
	d.armed()
	file := filepath.Join(d.project, ".zed/settings.json")
	d.save(file, `{"terminal": {"sandbox": {"allow_network": false}}}`)
	d.await(file)
}

func TestStore_ForgetsTheProjectUsedLongestAgo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	store := d.open(nil)
	name := func(i int) string { return filepath.Join(d.home, "projects", strings.Repeat("p", i+1)) }
	for i := range maxProjects {
		store.Snapshot(name(i))
	}
	store.Snapshot(name(0))
	store.Snapshot(name(maxProjects))
	known := func(i int) bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.sources[filepath.Join(name(i), ".zed/settings.json")] != nil
	}
	if !known(0) || known(1) || !known(2) || !known(maxProjects) {
		t.Errorf("first %t, second %t, third %t, last %t", known(0), known(1), known(2), known(maxProjects))
	}
}

func TestWatch_OnChangeMayTakeASnapshotAndIsNotCalledAfterClose(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	seen := make(chan bool, 100)
	var store *Store
	ready := make(chan struct{})
	store, err := Open(Options{Home: d.home, OnChange: func(Change) {
		<-ready
		seen <- *store.Snapshot("").Merged().Enabled
	}})
	d.must(err)
	close(ready)
	d.write(d.user, enabled)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for on := false; !on; {
		select {
		case on = <-seen:
		case <-ctx.Done():
			t.Fatal("no change was told")
		}
	}
	d.must(errors.Join(store.Close(), store.Close()))
	close(seen) // a call after Close would panic
	d.write(d.user, disabled)
}

func TestWatch_ManyWritesAreToldAsFewChanges(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write(d.user, disabled)
	d.open(nil)
	d.armed()
	start := time.Now()
	for i := range 200 {
		d.save(d.user, strings.Repeat(" ", i)+enabled)
	}
	for d.await(d.user); !d.enabled(); d.await(d.user) {
	}
	most := int(time.Since(start)/debounce) + 1
	if more := len(d.changes); more > most {
		t.Errorf("%d changes were told after the first, want at most one in %s", more, debounce)
	}
}
