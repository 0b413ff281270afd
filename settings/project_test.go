package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/trust"
)

// loosening asks for everything.
const loosening = `{"terminal": {"sandbox": {"enabled": false, "additional_read_write_paths": ["/"]}}}`

// newTrustFixture is a fixture with a project whose file asks for more than the user
// grants.
func newTrustFixture(t *testing.T) *fixture {
	t.Helper()
	d := newFixture(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []}}}}`)
	d.write(d.projectFile(), loosening)
	return d
}

func (d *fixture) projectFile() string { return filepath.Join(d.project, ".zed/settings.json") }

func (d *fixture) trustFile() string {
	return filepath.Join(d.home, ".local/state/sandbox-sidecar/trust.json")
}

// free reports whether tools in the project are without a sandbox.
func (d *fixture) free() bool {
	return !d.store.Snapshot(d.project).Compile(document.KindTool).Policy.Restricted
}

func TestTrust_HoldsForTheContentThatWasShown(t *testing.T) {
	t.Parallel()
	d := newTrustFixture(t)
	d.open(nil)
	shown := d.store.Snapshot(d.project).Project()
	if shown.Trusted || !shown.Exists || shown.File != d.projectFile() || shown.Dir != d.project ||
		len(shown.Asks) != 2 || d.free() {
		t.Fatalf("before: %+v, free %t", shown, d.free())
	}
	trusted, err := d.store.Trust(d.project, shown.Digest)
	if err != nil || !trusted.Trusted || trusted.Digest != shown.Digest || !d.free() {
		t.Fatalf("trusted: %+v, %v, free %t", trusted, err, d.free())
	}
	info, err := os.Stat(d.trustFile())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// Any change withdraws the trust, even one that means the same.
	d.write(d.projectFile(), loosening+" ")
	if d.free() {
		t.Error("another content is trusted")
	}
	var refusal *NotTrustedError
	if p, err := d.store.Trust(d.project, shown.Digest); !errors.As(err, &refusal) || p.Trusted ||
		!strings.Contains(err.Error(), "has changed") || refusal.Hint == "" {
		t.Errorf("a digest that was shown before the change: %+v, %v", p, err)
	}
	if d.free() {
		t.Error("what nobody was shown is trusted")
	}
	// The content that the user trusted is trusted again.
	d.write(d.projectFile(), loosening)
	if !d.free() {
		t.Error("the content that was trusted is not any more")
	}
	if p, err := d.store.Untrust(d.project); err != nil || p.Trusted || d.free() {
		t.Errorf("untrusted: %+v, %v, free %t", p, err, d.free())
	}
	if _, err := d.store.Untrust(d.project); err != nil {
		t.Errorf("untrust twice: %v", err)
	}
}

func TestTrust_RefusesWhatCannotBeTrusted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(d *fixture)
		want   string
	}{
		"no file": {func(d *fixture) { d.must(os.Remove(d.projectFile())) }, "there is no such file"},
		"broken":  {func(d *fixture) { d.write(d.projectFile(), "{") }, "not valid JSON"},
		"a directory": {func(d *fixture) {
			d.must(os.Remove(d.projectFile()))
			d.must(os.Mkdir(d.projectFile(), 0o755))
		}, "not a regular file"},
		"the user's": {func(d *fixture) {
			d.project = d.home
			d.user = d.projectFile()
			d.write(d.user, loosening)
		}, "not the settings file of a project"},
		"writable list": {func(d *fixture) {
			d.project = d.home
			d.write(d.projectFile(), loosening)
		}, "sessions could write the list"},
		"bytes": {func(d *fixture) {
			d.must(os.Rename(d.project, d.project+"\xff"))
			d.project += "\xff"
		}, "not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTrustFixture(t)
			test.change(d)
			d.open(func(o *Options) {
				if name == "the user's" {
					o.UserPath = d.user
				}
			})
			var refusal *NotTrustedError
			p, err := d.store.Trust(d.project, "")
			if !errors.As(err, &refusal) || !strings.Contains(err.Error(), test.want) || p.Trusted {
				t.Errorf("%+v, %v; want %q", p, err, test.want)
			}
			if _, err := os.Lstat(d.trustFile()); err == nil {
				t.Error("a list was written")
			}
		})
	}
}

func TestTrust_IsSeenByAnotherSidecarAtOnce(t *testing.T) {
	t.Parallel()
	d := newTrustFixture(t)
	d.open(nil).Snapshot(d.project)
	d.armed()
	other, err := Open(Options{Home: d.home, Platform: "linux", Once: true})
	d.must(err)
	if _, err := other.Trust(d.project, ""); err != nil {
		t.Fatal(err)
	}
	d.await(d.trustFile())
	if !d.free() {
		t.Error("trust given by another process does not count")
	}
	if _, err := other.Untrust(d.project); err != nil {
		t.Fatal(err)
	}
	if d.free() {
		t.Error("trust taken back by another process counts")
	}
}

func TestTrust_ManyWritersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	d := newTrustFixture(t)
	const writers = 16
	var group sync.WaitGroup
	name := func(i int) string { return filepath.Join(d.home, "projects", strings.Repeat("p", i+1)) }
	for i := range writers {
		d.write(filepath.Join(name(i), ".zed/settings.json"), loosening)
	}
	for i := range writers {
		group.Go(func() {
			store, err := Open(Options{Home: d.home, Platform: "linux", Once: true})
			for err == nil {
				// On a busy machine the others may take longer than one waits.
				if _, err = store.Trust(name(i), ""); !errors.Is(err, fsguard.ErrLocked) {
					break
				}
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	list, _ := trust.Read(d.trustFile())
	if list.Problem != "" || len(list.Projects) != writers {
		t.Errorf("%d projects, %s", len(list.Projects), list.Problem)
	}
	entries, err := os.ReadDir(filepath.Dir(d.trustFile()))
	if err != nil || len(entries) != 2 {
		t.Errorf("left beside the list and its lock: %v, %v", entries, err)
	}
}

func TestTrust_AListThatCannotBeUsedTrustsNothing(t *testing.T) {
	t.Parallel()
	good := func(d *fixture) string {
		d.open(nil)
		if _, err := d.store.Trust(d.project, ""); err != nil {
			d.t.Fatal(err)
		}
		data, err := os.ReadFile(d.trustFile())
		d.must(err)
		return string(data)
	}
	for name, test := range map[string]struct {
		spoil func(d *fixture, content string)
		want  string
	}{
		"half":  {func(d *fixture, s string) { d.write(d.trustFile(), s[:len(s)/2]) }, "not valid JSON"},
		"empty": {func(d *fixture, _ string) { d.write(d.trustFile(), "") }, "not valid JSON"},
		"newer": {func(d *fixture, s string) {
			d.write(d.trustFile(), strings.Replace(s, `"version": 1`, `"version": 2`, 1))
		}, "version 2"},
		"unknown key": {func(d *fixture, s string) {
			d.write(d.trustFile(), strings.Replace(s, `"path"`, `"all": true, "path"`, 1))
		}, "not a list"},
		"wrong digest": {func(d *fixture, s string) {
			i := strings.Index(s, `"digest": "`)
			d.write(d.trustFile(), s[:i+11]+"zz"+s[i+13:])
		}, "entry 1"},
		"relative path": {func(d *fixture, s string) {
			d.write(d.trustFile(), strings.Replace(s, `"path": "/`, `"path": "`, 1))
		}, "entry 1"},
		"a symlink": {func(d *fixture, s string) {
			d.must(os.Rename(d.trustFile(), d.home+"/x"))
			d.must(os.Symlink(d.home+"/x", d.trustFile()))
		}, "not a regular file"},
		"a FIFO": {func(d *fixture, _ string) {
			d.must(os.Remove(d.trustFile()))
			d.must(syscall.Mkfifo(d.trustFile(), 0o600))
		}, "not a regular file"},
		"others write it": {func(d *fixture, _ string) {
			d.must(os.Chmod(d.trustFile(), 0o622))
		}, "others than its owner"},
		"too large": {func(d *fixture, _ string) { d.must(os.Truncate(d.trustFile(), 100<<20)) }, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTrustFixture(t)
			content := good(d)
			if !d.free() {
				t.Fatal("control: the good list trusts nothing")
			}
			test.spoil(d, content)
			if d.free() {
				t.Error("still trusted")
			}
			said := d.store.Snapshot(d.project).DiagnosticsOf(d.trustFile())
			if len(said) != 1 || said[0].Severity != document.SeverityError ||
				!strings.Contains(said[0].Message, test.want) ||
				!strings.Contains(said[0].Message, "no project is trusted") {
				t.Errorf("diagnostics: %v, want %q", said, test.want)
			}
			// Trusting again makes a new list. It does not overwrite a newer
			// program's list and does not follow a link.
			_, err := d.store.Trust(d.project, "")
			if name == "newer" {
				if err == nil || d.free() {
					t.Errorf("a newer program's list was overwritten: %v", err)
				}
				return
			}
			if err != nil || !d.free() || len(d.store.Snapshot(d.project).DiagnosticsOf(d.trustFile())) != 0 {
				t.Errorf("trusted again: %v, free %t", err, d.free())
			}
			if info, err := os.Lstat(d.trustFile()); err != nil || info.Mode() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
		})
	}
}
