package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
)

func TestStore_LayersAndOrigins(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "apply_to": "tool", `+
		`"additional_read_only_paths": ["/a", "/b"], "system_paths": {"executable": ["/x"], "read_only": ["/y"]}}}}`)
	d.write(d.own, `{"terminal": {"sandbox": {"additional_read_only_paths": ["/c"], `+
		`"system_paths": {"read_only": []}}}}`)
	project := filepath.Join(d.project, ".zed/settings.json")
	d.write(project, `{"terminal": {"sandbox": {"allow_network": false}}}`)
	s := d.open(func(o *Options) {
		o.Editor = []byte(`{"terminal": {"sandbox": {"apply_to": "both", "enabled": null, "typo": 1}}}`)
	}).Snapshot(d.project)
	merged, origins := s.Merged(), s.Origins()
	if !*merged.Enabled || *merged.ApplyTo != document.ApplyToBoth || *merged.AllowNetwork ||
		!slices.Equal(merged.AdditionalReadOnlyPaths, []string{"/c"}) ||
		!slices.Equal(merged.SystemPaths.Executable, []string{"/x"}) || merged.SystemPaths.ReadOnly == nil ||
		len(merged.SystemPaths.ReadOnly) != 0 ||
		merged.SystemPaths.ReadWrite != nil || merged.ProtectedPaths != nil || merged.OnUnavailable != nil {
		t.Errorf("merged: %+v %+v", merged, merged.SystemPaths)
	}
	for key, want := range map[string]string{
		"enabled": d.user, "apply_to": "editor", "additional_read_only_paths": d.own, "system_paths.executable": d.user,
		"system_paths.read_only": d.own, "system_paths.read_write": "built-in defaults", "allow_network": project,
		"toolchains": "built-in defaults",
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
	// A caller may change its copy.
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
	home := newFixture(t).home
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"home from the environment": {
			Options{Account: home, Env: []string{"HOME=" + home + "/"}},
			[]string{home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json"},
		},
		"another home in the environment": {
			Options{Account: home, Env: []string{"HOME=" + home + "/x"}},
			[]string{
				home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json",
				home + "/x/.config/zed/settings.json", home + "/x/.config/sandbox-sidecar/settings.json",
			},
		},
		"XDG_CONFIG_HOME": {
			Options{Home: home, Env: []string{"XDG_CONFIG_HOME=" + home + "/x"}},
			[]string{
				home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json",
				home + "/x/zed/settings.json", home + "/x/sandbox-sidecar/settings.json",
			},
		},
		"a relative XDG_CONFIG_HOME": {
			Options{Home: home, Env: []string{"XDG_CONFIG_HOME=x"}},
			[]string{home + "/.config/zed/settings.json", home + "/.config/sandbox-sidecar/settings.json"},
		},
		"a path replaces both files": {Options{Home: home, UserPath: home + "/my.json"}, []string{home + "/my.json"}},
		"the editor's layer comes last": {
			Options{Home: home, UserPath: home + "/my.json", Editor: []byte("{}")},
			[]string{home + "/my.json", "editor"},
		},
		"a project dir must be absolute": {
			Options{Home: home, UserPath: home + "/my.json"}, []string{home + "/my.json"},
		},
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

// A project that the store hears of later counts for an evaluation that is kept,
// too.
func TestRemember_CountsForKeptEvaluations(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	// The home directory is below /tmp, which sessions may write.
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []}}}}`)
	d.write(filepath.Join(d.home, "mono/x"), "")
	d.write(filepath.Join(d.home, "keys/id"), "")
	d.must(os.Symlink(filepath.Join(d.home, "keys"), filepath.Join(d.home, "mono/app")))
	store := d.open(nil)
	app := filepath.Join(d.home, "mono/app")
	for range 2 {
		if r := store.Snapshot(app).Compile(document.KindTool).Redirect; r != nil {
			t.Fatalf("no session may have been there, and the project is refused: %v", r)
		}
	}
	store.Remember(filepath.Join(d.home, "mono"))
	if store.Snapshot(app).Compile(document.KindTool).Redirect == nil {
		t.Error("a symlink in another project is relied on")
	}
}

func TestFirstTime_NotesAreToldOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(f.own, enabled)
	store, err := Open(Options{Home: f.home, Once: true, Env: []string{
		"HTTPS_PROXY=http://ada:lovelace@proxy", "XDG_STATE_HOME=" + f.home,
	}})
	f.must(err)
	defer store.Close()
	compiled := store.Snapshot(f.project).Compile(document.KindTool)
	notes := compiled.Notes()
	if len(notes) != 1 || !strings.Contains(notes[0].Text, "HTTPS_PROXY") ||
		strings.Contains(notes[0].Text, "lovelace") {
		t.Errorf("notes: %q", notes)
	}
	if first, again := store.FirstTime("x"), store.FirstTime("x"); !first || again {
		t.Errorf("told %t, and again %t", first, again)
	}
}
