package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/fsguard"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/explain"
)

var opt = explain.Suggestion{Key: "additional_read_only_paths", Value: "/opt"}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// What is written is one entry. Every other byte stays, and Undo takes exactly
// that back.
func TestConfirm_ChangesOneLineAndUndoTakesItBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, line, after string }{
		"comments and order": {
			"{\n  // mine\n  \"terminal\": {\"sandbox\": {\n    \"enabled\": true, // on\n" +
				"    \"additional_read_only_paths\": [\n      \"/srv\", // data\n    ],\n  }},\n}\n",
			`      "/opt",`,
			"{\n  // mine\n  \"terminal\": {\"sandbox\": {\n    \"enabled\": true, // on\n" +
				"    \"additional_read_only_paths\": [\n      \"/srv\", // data\n      \"/opt\",\n    ],\n  }},\n}\n",
		},
		"line ends of Windows and a mark": {
			"\ufeff{\r\n\t\"terminal\": {\r\n\t\t\"sandbox\": {\r\n\t\t\t\"enabled\": true\r\n\t\t}\r\n\t}\r\n}\r\n",
			"\t\t\t\"additional_read_only_paths\": [\"/opt\"]",
			"\ufeff{\r\n\t\"terminal\": {\r\n\t\t\"sandbox\": {\r\n\t\t\t\"enabled\": true,\r\n" +
				"\t\t\t\"additional_read_only_paths\": [\"/opt\"]\r\n\t\t}\r\n\t}\r\n}\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.write(d.own, test.before)
			store := d.open(nil)
			p, err := store.Propose(ScopeUser, d.project, opt)
			must(t, err)
			if got := strings.Join(p.Lines, "|"); got != test.line {
				t.Errorf("the line is %q", p.Lines)
			}
			if read(t, d.own) != test.before {
				t.Fatal("a proposal has written")
			}
			must(t, store.Confirm(p))
			if got := read(t, d.own); got != test.after {
				t.Errorf("got %q, want %q", got, test.after)
			}
			again, err := store.Propose(ScopeUser, d.project, opt)
			if err != nil || !again.Present {
				t.Errorf("a second time: %+v, %v", again, err)
			}
			file, undone, err := store.Undo()
			if err != nil || file != d.own || undone.Value != "/opt" || read(t, d.own) != test.before {
				t.Errorf("undone %s %+v, %v: %q", file, undone, err, read(t, d.own))
			}
			if _, _, err := store.Undo(); !errors.Is(err, ErrNothingToUndo) {
				t.Errorf("a second time: %v", err)
			}
		})
	}
}

// A path that becomes writable is no entry for reading any more, if that is in the
// same list of files. Undo brings the entry back.
func TestConfirm_AGrantForWritingReplacesTheOneForReading(t *testing.T) {
	t.Parallel()
	const before = `{"terminal": {"sandbox": {
    "enabled": true,
    "additional_read_only_paths": [
      "/srv",
      "~/notes"
    ]
  }}}
`
	for value, gone := range map[string]string{
		"notes": `      "~/notes"`, "notes/": `      "~/notes"`, "notes/sub": "", "other": "",
	} {
		d := newFixture(t)
		d.must(os.MkdirAll(filepath.Join(d.home, "notes", "sub"), 0o755))
		d.write(d.own, before)
		store := d.open(nil)
		p, err := store.Propose(ScopeUser, d.project,
			explain.Suggestion{Key: "additional_read_write_paths", Value: d.home + "/" + value})
		must(t, err)
		fresh := `    "additional_read_write_paths": ["` + d.home + "/" + value + `"]`
		if got := strings.Join(p.Gone, "|"); got != gone || strings.Join(p.Lines, "|") != fresh {
			t.Errorf("%s: gone %q, new %q", value, p.Gone, p.Lines)
		}
		must(t, store.Confirm(p))
		if text := read(t, d.own); strings.Contains(text, "~/notes") != (gone == "") ||
			!strings.Contains(text, "/srv") {
			t.Errorf("%s: written %s", value, text)
		}
		for _, said := range store.Snapshot(d.project).Diagnostics() {
			if gone != "" && strings.Contains(fmt.Sprint(said), "can be written all the same") {
				t.Errorf("%s: %v", value, said)
			}
		}
		if _, _, err := store.Undo(); err != nil || read(t, d.own) != before {
			t.Errorf("%s: undo: %v: %s", value, err, read(t, d.own))
		}
	}
}

// Undo goes back one change after the other, through several files. What is kept is
// bounded.
func TestUndo_TakesOneChangeAfterTheOther(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, outsideTmp)
	d.must(os.Mkdir(d.project, 0o755))
	store := d.open(nil)
	states := []string{}
	look := func() string {
		text, err := os.ReadFile(d.projectFile())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return read(t, d.own) + string(text)
	}
	for i := range mostChanges + 2 {
		states = append(states, look())
		scope := ScopeUser
		if i%2 == 1 {
			scope = ScopeProject
		}
		must(t, store.Allow(scope, d.project,
			explain.Suggestion{Key: "additional_read_only_paths", Value: fmt.Sprintf("/opt/%d", i)}))
	}
	again := d.open(nil) // another process
	for i := range mostChanges {
		if _, _, err := again.Undo(); err != nil || look() != states[len(states)-1-i] {
			t.Fatalf("%d: %v:\n%s\nwant\n%s", i, err, look(), states[len(states)-1-i])
		}
	}
	if _, _, err := again.Undo(); !errors.Is(err, ErrNothingToUndo) || look() != states[2] {
		t.Errorf("beyond the last: %v", err)
	}
	must(t, store.Allow(ScopeUser, d.project, opt))
	if _, _, err := again.Undo(); err != nil || look() != states[2] {
		t.Errorf("a new one: %v", err)
	}
}

func TestConfirm_MakesAndUndoRemovesTheFile(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	store := d.open(nil)
	p, err := store.Propose(ScopeUser, d.project, opt)
	must(t, err)
	if _, err := os.Stat(filepath.Dir(d.own)); err == nil {
		t.Error("a proposal has made a directory")
	}
	must(t, store.Confirm(p))
	if !strings.Contains(read(t, d.own), `"/opt"`) {
		t.Error("not written")
	}
	if _, _, err := store.Undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file stays: %v", err)
	}
}

// Of two shells that propose at once, one writes. The other one's content is gone.
func TestConfirm_WritesOnlyOverWhatWasShown(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, enabled)
	one, two := d.open(nil), d.open(nil)
	first, err := one.Propose(ScopeUser, d.project, opt)
	must(t, err)
	second, err := two.Propose(ScopeUser, d.project,
		explain.Suggestion{Key: "additional_read_only_paths", Value: "/srv"})
	must(t, err)
	must(t, one.Confirm(first))
	if err := two.Confirm(second); !errors.Is(err, ErrChanged) {
		t.Errorf("the second: %v", err)
	}
	if got := read(t, d.own); !strings.Contains(got, "/opt") || strings.Contains(got, "/srv") {
		t.Errorf("written: %s", got)
	}
	// Undo does not take away what came after it.
	d.write(d.own, read(t, d.own)+"// edited\n")
	before := read(t, d.own)
	if _, undone, err := one.Undo(); !errors.Is(err, ErrChanged) || undone.Value != "/opt" || read(t, d.own) != before {
		t.Errorf("undo: %v", err)
	}
	// And it does not stand in the way of those before.
	if _, _, err := one.Undo(); !errors.Is(err, ErrNothingToUndo) {
		t.Errorf("undo again: %v", err)
	}
}

// Of shells that allow the same at once, one writes it, and none loses another's.
func TestAllow_WritesNothingTwice(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, enabled)
	one, two := d.open(nil), d.open(nil)
	late, err := two.addition(ScopeUser, d.project, opt)
	must(t, err)
	must(t, one.Allow(ScopeUser, d.project, opt))
	for _, dry := range []bool{true, false} {
		order := late.order
		order.Dry = dry
		if _, err := late.do(order); !errors.Is(err, ErrChanged) {
			t.Errorf("after another has written it: dry %t: %v", dry, err)
		}
	}
	var shells sync.WaitGroup
	for i := range 4 {
		for _, path := range []string{"/srv", fmt.Sprintf("/srv/%d", i)} {
			shells.Go(func() {
				suggestion := explain.Suggestion{Key: "additional_read_only_paths", Value: path}
				store, err := Open(Options{Home: d.home, Platform: "linux", Once: true})
				for err == nil {
					// On a busy machine the others may take longer than one waits.
					if err = store.Allow(ScopeUser, d.project, suggestion); !errors.Is(err, fsguard.ErrLocked) {
						break
					}
					err = nil
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	shells.Wait()
	for _, path := range []string{"/opt", "/srv", "/srv/0", "/srv/1", "/srv/2", "/srv/3"} {
		if text := read(t, d.own); strings.Count(text, `"`+path+`"`) != 1 {
			t.Errorf("%s is not there once: %s", path, text)
		}
	}
}

// Where one kind of session has a list for writing alone, the entry for reading
// stays.
func TestPropose_TakesReadingFromNoOtherKind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tool  string
		drops bool
	}{"both have the list": {"", true}, "tools have one": {`, "tool": {"additional_read_write_paths": []}`, false}} {
		d := newFixture(t)
		d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "additional_read_only_paths": ["/opt/x"]`+test.tool+`}}}`)
		p, err := d.open(nil).Propose(ScopeUser, d.project,
			explain.Suggestion{Key: "additional_read_write_paths", Value: "/opt/x"})
		must(t, err)
		if (p.order.Drop != nil) != test.drops {
			t.Errorf("%s: %+v", name, p.order.Drop)
		}
	}
}

func TestConfirm_KeepsSymlinksAndReadOnlyFiles(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	dotfile := filepath.Join(d.home, "dotfiles", "sidecar.json")
	d.write(dotfile, enabled)
	must(t, os.Chmod(dotfile, 0o640))
	must(t, os.MkdirAll(filepath.Dir(d.own), 0o755))
	must(t, os.Symlink(dotfile, d.own))
	store := d.open(nil)
	p, err := store.Propose(ScopeUser, d.project, opt)
	must(t, err)
	must(t, store.Confirm(p))
	link, err := os.Readlink(d.own)
	info, statErr := os.Stat(dotfile)
	must(t, errors.Join(err, statErr))
	if link != dotfile || info.Mode().Perm() != 0o640 || !strings.Contains(read(t, dotfile), "/opt") {
		t.Errorf("link to %s, mode %v: %s", link, info.Mode(), read(t, dotfile))
	}
	if _, _, err := store.Undo(); err != nil || read(t, dotfile) != enabled {
		t.Errorf("undo: %v: %s", err, read(t, dotfile))
	}
	must(t, os.Chmod(dotfile, 0o440))
	if _, err := store.Propose(ScopeUser, d.project, opt); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
}

// A project's file is trusted with the entry, and trusted as before without it.
func TestConfirm_InAProjectKeepsItsTrust(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, outsideTmp)
	file := filepath.Join(d.project, ".zed", "settings.json")
	d.write(file, `{"terminal": {"sandbox": {"additional_read_only_paths": ["/srv"]}}}`)
	store := d.open(nil)
	if _, err := store.Propose(ScopeProject, d.project, opt); !errors.Is(err, ErrNotAllowable) {
		t.Fatalf("untrusted: %v", err)
	}
	_, err := store.Trust(d.project, "")
	must(t, err)
	p, err := store.Propose(ScopeProject, d.project, opt)
	must(t, err)
	if got := store.With(p).MergedFor("tool").AdditionalReadOnlyPaths; len(got) != 2 {
		t.Errorf("with the proposal: %q", got)
	}
	must(t, store.Confirm(p))
	if now := store.Snapshot(d.project); !now.Project().Trusted ||
		len(now.MergedFor("tool").AdditionalReadOnlyPaths) != 2 {
		t.Errorf("after it: %+v", now.Project())
	}
	if _, _, err := store.Undo(); err != nil {
		t.Fatal(err)
	}
	if now := store.Snapshot(d.project); !now.Project().Trusted ||
		len(now.MergedFor("tool").AdditionalReadOnlyPaths) != 1 {
		t.Errorf("taken back: %+v", now.Project())
	}
}

// What With says of a proposal is what holds once it is written.
func TestWith_IsWhatIsWritten(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "toolchains": ["go"]}}}`)
	d.must(os.MkdirAll(filepath.Join(d.home, "data"), 0o755))
	store := d.open(nil)
	s := explain.Suggestion{Key: "additional_read_write_paths", Value: filepath.Join(d.home, "data")}
	p, err := store.Propose(ScopeUser, d.project, s)
	must(t, err)
	answer := func() bool {
		x, err := explain.Why(store.Snapshot(d.project), "tool", explain.Write, s.Value)
		must(t, err)
		return x.Allowed
	}
	tried, err := explain.Why(store.With(p), "tool", explain.Write, s.Value)
	must(t, err)
	if before := answer(); before || !tried.Allowed {
		t.Errorf("before %t, tried %t", before, tried.Allowed)
	}
	must(t, store.Confirm(p))
	if !answer() {
		t.Error("written, and refused")
	}
}
