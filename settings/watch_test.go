package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/deadline"
)

func TestWatch_TellsEveryKindOfChange(t *testing.T) {
	t.Parallel()
	dotfiles := func(d *fixture) string { return filepath.Join(d.home, "dotfiles/zed.json") }
	tests := map[string]struct{ before, Change func(d *fixture) }{
		"written in place": {func(d *fixture) {
			d.write(d.user, disabled)
		}, func(d *fixture) { d.write(d.user, enabled) }},
		"replaced by a rename": {func(d *fixture) {
			d.write(d.user, disabled)
		}, func(d *fixture) { d.save(d.user, enabled) }},
		"created in a directory that exists": {func(d *fixture) {
			d.must(os.MkdirAll(filepath.Dir(d.user), 0o755))
		}, func(d *fixture) { d.write(d.user, enabled) }},
		"created with its directories": {func(*fixture) {}, func(d *fixture) { d.write(d.user, enabled) }},
		"directory deleted and recreated": {func(d *fixture) { d.write(d.user, disabled) }, func(d *fixture) {
			d.must(os.RemoveAll(filepath.Join(d.home, ".config")))
			d.await(d.user)
			d.write(d.user, enabled)
		}},
		"directory renamed and another in its place": {func(d *fixture) {
			d.write(d.user, disabled)
		}, func(d *fixture) {
			d.must(os.Rename(filepath.Join(d.home, ".config"), filepath.Join(d.home, "old")))
			d.await(d.user)
			d.write(d.user, enabled)
		}},
		"target of a symlink": {func(d *fixture) {
			d.write(dotfiles(d), disabled)
			d.must(os.MkdirAll(filepath.Dir(d.user), 0o755))
			d.must(os.Symlink("../../dotfiles/zed.json", d.user))
		}, func(d *fixture) { d.save(dotfiles(d), enabled) }},
		"symlinked directory": {func(d *fixture) {
			d.write(filepath.Join(d.home, "dotfiles/zed/settings.json"), disabled)
			d.must(os.MkdirAll(filepath.Join(d.home, ".config"), 0o755))
			d.must(os.Symlink("../dotfiles/zed", filepath.Join(d.home, ".config/zed")))
		}, func(d *fixture) { d.save(filepath.Join(d.home, "dotfiles/zed/settings.json"), enabled) }},
		"symlink pointed elsewhere": {func(d *fixture) {
			d.write(dotfiles(d), disabled)
			d.write(dotfiles(d)+".2", enabled)
			d.must(os.MkdirAll(filepath.Dir(d.user), 0o755))
			d.must(os.Symlink(dotfiles(d), d.user))
		}, func(d *fixture) {
			d.must(os.Symlink(dotfiles(d)+".2", d.user+".tmp"))
			d.must(os.Rename(d.user+".tmp", d.user))
		}},
	}
	for name, test := range tests {
		for mode, newWatcher := range map[string]func() (source.Watcher, error){
			"watched": source.NewSystemWatcher,
			"polled":  func() (source.Watcher, error) { return nil, syscall.EMFILE },
		} {
			t.Run(name+", "+mode, func(t *testing.T) {
				t.Parallel()
				d := newFixture(t)
				test.before(d)
				d.openWith(nil, newWatcher)
				d.armed()
				test.Change(d)
				for !d.enabled() {
					d.await(d.user)
				}
				// The snapshot may have seen the change first; it is reported
				// all the same.
				d.await(d.user)
			})
		}
	}
}

func TestWatch_AProjectIsWatchedFromItsFirstSnapshotOn(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.must(os.Mkdir(d.project, 0o755))
	d.open(nil).Snapshot(d.project)
	d.armed()
	file := filepath.Join(d.project, ".zed/settings.json")
	d.save(file, `{"terminal": {"sandbox": {"allow_network": false}}}`)
	d.await(file)
}

func TestWatch_OnChangeMayTakeASnapshotAndIsNotCalledAfterClose(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
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
	ctx, cancel := deadline.Context(t.Context(), 20*time.Second)
	defer cancel()
	for on := false; !on; {
		select {
		case on = <-seen:
		case <-ctx.Done():
			t.Fatal("no change was reported")
		}
	}
	d.must(errors.Join(store.Close(), store.Close()))
	close(seen) // a call after Close would panic
	d.write(d.user, disabled)
}

func TestWatch_ManyWritesAreToldAsFewChanges(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, disabled)
	d.open(nil)
	d.armed()
	start := time.Now()
	for i := range 500 {
		d.save(d.user, strings.Repeat(" ", i)+enabled)
	}
	for d.await(d.user); !d.enabled(); d.await(d.user) {
	}
	more := len(d.changes) // before the time is taken: each of them took a while
	if most := int(time.Since(start)/source.Debounce) + 1; more > most {
		t.Errorf("%d changes were reported after the first, want at most one in %s", more, source.Debounce)
	}
	// The last save counts, and was reported last.
	d.save(d.user, disabled)
	for d.await(d.user); d.enabled(); d.await(d.user) {
	}
}

func TestWatch_AFileThatIsHalfWrittenKeepsTheLastGoodContent(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	d.open(nil)
	d.armed()
	file, err := os.OpenFile(d.user, os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	defer file.Close()
	for i := range len(enabled) {
		_, err := file.WriteString(enabled[i : i+1])
		must(t, err)
		if i%7 == 3 && !d.enabled() {
			t.Fatalf("after %d bytes of %d the sandbox is off", i+1, len(enabled))
		}
	}
	d.await(d.user)
	if s := d.store.Snapshot(""); !*s.Merged().Enabled || len(s.Diagnostics()) != 0 {
		t.Errorf("enabled %t, diagnostics %v", *s.Merged().Enabled, s.Diagnostics())
	}
}

// oddWatcher is a system watcher whose Add may fail, or that reports nothing.
type oddWatcher struct {
	source.Watcher
	add  func(dir string) error
	deaf bool
}

func (w oddWatcher) Add(dir string) error {
	if err := w.add(dir); err != nil {
		return err
	}
	return w.Watcher.Add(dir)
}

func (w oddWatcher) Channels() (<-chan fsnotify.Event, <-chan error) {
	events, failures := w.Watcher.Channels()
	if !w.deaf {
		return events, failures
	}
	silence := make(chan fsnotify.Event)
	go func() {
		for range events {
		}
		close(silence)
	}()
	return silence, failures
}

func TestWatch_WhatCannotBeWatchedIsPolledAndThatIsSaid(t *testing.T) {
	t.Parallel()
	fine := func(string) error { return nil }
	for name, test := range map[string]struct {
		add    func(string) error
		deaf   string
		silent bool
		says   string
	}{
		"too many watches": {func(string) error {
			return syscall.ENOSPC
		}, "", false, "no space left on device; on Linux fs.inotify.max_user_watches"},
		"a file system of another's": {
			fine, "NFS", true,
			"is on a file system (NFS) that does not report changes by other machines",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.user, disabled)
			notices := make(chan string, 10)
			d.openWatching(func(o *Options) { o.OnNotice = func(text string) { notices <- text } }, source.Watching{
				NewWatcher: func() (source.Watcher, error) {
					w, err := source.NewSystemWatcher()
					return oddWatcher{Watcher: w, add: test.add, deaf: test.silent}, err
				},
				Unreliable: func(string) string { return test.deaf },
			})
			select {
			case text := <-notices:
				if !strings.Contains(text, test.says) || !strings.Contains(text, "checked every 2s") {
					t.Errorf("said %q", text)
				}
			case <-deadline.After(20 * time.Second):
				t.Fatal("nothing was said")
			}
			d.save(d.user, enabled)
			for d.await(d.user); !d.enabled(); d.await(d.user) {
			}
			if len(notices) != 0 {
				t.Errorf("said again: %q", <-notices)
			}
		})
	}
}
