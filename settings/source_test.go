package settings

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

func TestSnapshot_SeesASaveAtOnce(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, disabled)
	// Without any notification: the snapshot itself has to check.
	d.openWith(nil, func() (source.Watcher, error) { return nil, syscall.EMFILE })
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
		breakFile func(d *fixture)
		says      string
	}{
		"syntax": {func(d *fixture) { d.write(d.user, "{\n  oops") }, "2:3: error: not valid JSON"},
		"UTF-8":  {func(d *fixture) { d.write(d.user, "{\"a\": \"\xff\"}") }, "1:8: error: not valid UTF-8"},
		"array":  {func(d *fixture) { d.write(d.user, "[]") }, "expected an object"},
		"FIFO": {func(d *fixture) {
			d.must(os.Remove(d.user))
			d.must(syscall.Mkfifo(d.user, 0o644))
		}, "not a regular file"},
		"directory": {func(d *fixture) {
			d.must(os.Remove(d.user))
			d.must(os.Mkdir(d.user, 0o755))
		}, "not a regular file"},
		"huge": {func(d *fixture) { d.must(os.Truncate(d.user, 100<<20)) }, "larger than 4 MiB"},
		"deep": {func(d *fixture) { d.write(d.user, strings.Repeat("[", 4_000_000)) }, "nested deeper"},
		"dangling": {func(d *fixture) {
			d.must(os.Remove(d.user))
			d.must(os.Symlink("nowhere", d.user))
		}, "symlink to a file that does not exist"},
		"loop": {func(d *fixture) {
			d.must(os.Remove(d.user))
			d.must(os.Symlink("settings.json", d.user))
		}, "cannot read"},
		"device": {func(d *fixture) {
			d.must(os.Remove(d.user))
			d.must(os.Symlink("/dev/zero", d.user))
		}, "not a regular file"},
	}
	for name, breakage := range breakages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
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
			if got := strings.Join(s.Compile(document.KindTool).Warnings, "\n"); !strings.Contains(got,
				"last good content counts") {
				t.Errorf("warnings: %s", got)
			}
			if doubt := s.Compile(document.KindTool).Doubt; doubt != nil {
				t.Errorf("tools are refused: %v", doubt)
			}
			d.must(os.RemoveAll(d.user))
			d.write(d.user, disabled)
			if s := d.store.Snapshot(""); *s.Merged().Enabled || len(s.Diagnostics()) != 0 {
				t.Errorf("the repaired file does not count: %v", s.Diagnostics())
			}

			// The same file at start-up: it is unclear what it asks for.
			d.must(os.Remove(d.user))
			d.write(d.user, enabled)
			breakage.breakFile(d)
			fresh := newFixture(t)
			fresh.home, fresh.user = d.home, d.user
			s = fresh.open(nil).Snapshot("")
			if got := s.Compile(document.KindTool).Doubt; got == nil || !got.Refused || got.File != d.user ||
				!strings.Contains(got.String(), breakage.says) {
				t.Errorf("doubt: %v", got)
			}
			if got := s.Compile(document.KindTerminal).Doubt; got == nil || got.Refused || got.Named {
				t.Errorf("terminals' doubt: %v", got)
			}
		})
	}
}

func TestSnapshot_DiagnosticsOnOlderContentAreNotGivenForABrokenFile(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "typo": 1, `+
		`"additional_read_only_paths": ["relative"]}}}`)
	d.open(nil)
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 2 {
		t.Errorf("diagnostics: %v", got)
	}
	d.write(d.user, "{")
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 1 ||
		!strings.Contains(got[0].Message, "not valid JSON") {
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
	d := newFixture(t)
	d.write(d.user, enabled)
	d.open(nil)
	d.must(os.Chmod(d.user, 0))
	s := d.store.Snapshot("")
	if !*s.Merged().Enabled || len(s.Diagnostics()) != 1 ||
		!strings.Contains(s.Diagnostics()[0].Message, "permission denied") {
		t.Errorf("enabled %t, diagnostics %v", *s.Merged().Enabled, s.Diagnostics())
	}
}

func TestSnapshot_DeletedFileIsAbsent(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
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

func TestKinds_AMistakeKeepsTheLastValues(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "tool": {"allow_network": false}}}}`)
	store := d.open(nil)
	if store.Snapshot("").Compile(document.KindTool).Policy.Network.Allowed {
		t.Fatal("the network is on")
	}
	for _, broken := range []string{`{"allow_network": "no"}`, `"offline"`, `{"alow_network": false}`} {
		d.save(d.own, `{"terminal": {"sandbox": {"enabled": true, "tool": `+broken+`}}}`)
		c := store.Snapshot("").Compile(document.KindTool)
		if c.Policy.Network.Allowed || c.Doubt == nil || !c.Doubt.Refused {
			t.Errorf("%s: network %t, doubt %v", broken, c.Policy.Network.Allowed, c.Doubt)
		}
	}
}

func TestModes_AWrongModeKeepsTheLast(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"mode": "strict"}}}`)
	store := d.open(nil)
	before := store.Snapshot("").Compile(document.KindTerminal)
	want := before.Policy.ID()
	for _, wrong := range []string{`"mode": "stict"`, `"mode": true`, `"moed": "strict"`} {
		d.save(d.own, `{"terminal": {"sandbox": {`+wrong+`}}}`)
		s := store.Snapshot("")
		if c := s.Compile(document.KindTerminal); c.Policy.ID() != want {
			t.Errorf("%s: another policy: %+v", wrong, s.Merged())
		}
		if doubt := s.Compile(document.KindTool).Doubt; doubt == nil || !doubt.Refused {
			t.Errorf("%s: tools start: %v", wrong, doubt)
		}
	}
	// Without a good content before, tools do not start.
	fresh := newFixture(t)
	fresh.write(fresh.own, `{"terminal": {"sandbox": {"mode": "stict"}}}`)
	doubt := fresh.open(nil).Snapshot("").Compile(document.KindTool).Doubt
	if doubt == nil || !doubt.Refused || doubt.Line != 1 || doubt.Column != 35 {
		t.Errorf("doubt: %+v", doubt)
	}
}

// A syntax error is reported with its position, and disappears.
func TestDiagnostics_OfAFileThatCannotBeParsedGoWhenItIsFixed(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, "{\n  \"terminal\": {\n    \"sandbox\": {\"enabled\" true}}}")
	d.open(nil)
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 1 || got[0].Line != 3 || got[0].Column != 27 ||
		got[0].Severity != document.SeverityError {
		t.Errorf("diagnostics: %v", got)
	}
	d.write(d.user, enabled)
	if got := d.store.Snapshot("").Diagnostics(); len(got) != 0 {
		t.Errorf("after it was fixed: %v", got)
	}
	must(t, os.Remove(d.user))
	must(t, os.MkdirAll(filepath.Join(d.user, "x"), 0o700))
	if got := d.store.Snapshot("").DiagnosticsOf(d.user); len(got) != 1 || got[0].Line != 1 || got[0].Column != 1 {
		t.Errorf("diagnostics of a directory: %v", got)
	}
}
