package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// tools returns why tools do not start; "" if they do.
func (d *fixture) tools(project string) string {
	d.t.Helper()
	doubt := d.store.Snapshot(project).Compile(document.KindTool).Doubt
	if doubt == nil {
		return ""
	}
	if !doubt.Refused {
		d.t.Errorf("tools start in doubt: %v", doubt)
	}
	return doubt.String()
}

func TestDoubt_MistakesStopTools(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ block, says string }{
		"nothing wrong":   {`{"enabled": true}`, ""},
		"null inherits":   {`{"enabled": null, "allow_network": null}`, ""},
		"enabled":         {`{"enabled": "yes"}`, "enabled: expected true or false"},
		"apply_to":        {`{"enabled": true, "apply_to": ["tool"]}`, "apply_to: expected one of"},
		"an unknown word": {`{"enabled": true, "apply_to": "tools"}`, "apply_to: expected one of"},
		"allow_network":   {`{"enabled": true, "allow_network": "no"}`, "allow_network: expected true or false"},
		"on_unavailable":  {`{"enabled": true, "on_unavailable": true}`, "on_unavailable: expected one of"},
		"protected_paths": {`{"enabled": true, "protected_paths": ".git"}`, "protected_paths: expected an array"},
		"an entry": {
			`{"enabled": true, "protected_paths": [".git", 1]}`,
			"protected_paths: expected a string",
		},
		"an unknown variable": {
			`{"enabled": true, "protected_paths": ["$NOT_SET/x"]}`,
			"the variable NOT_SET is not set",
		},
		"system_paths": {`{"enabled": true, "system_paths": []}`, "system_paths: expected an object"},
		"a part of them": {
			`{"enabled": true, "system_paths": {"read_write": false}}`,
			"system_paths.read_write: expected an array",
		},
		"variables": {
			`{"enabled": true, "allowed_env_vars": {"A": 1}}`,
			"allowed_env_vars: expected an array",
		},
		"a misspelt key":      {`{"enable": true}`, `did you mean "enabled"`},
		"a key of the future": {`{"ambience": "strict"}`, "ambience: unknown setting"},
		"a key twice":         {`{"enabled": true, "enabled": false}`, "written twice"},
		"an entry that cannot open": {
			`{"enabled": true, "additional_read_only_paths": ["relative"], "toolchains": ["cobol"]}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			text := `{"terminal": {"sandbox": ` + test.block + `}}`
			linux := `{"linux": ` + text + `}`
			check := func(what, project string) {
				t.Helper()
				if got := d.tools(project); got == "" != (test.says == "") || !strings.Contains(got, test.says) {
					t.Errorf("%s: doubt %q, want %q", what, got, test.says)
				}
			}
			for _, file := range []string{d.user, d.own} {
				for _, content := range []string{text, linux} {
					d.write(file, content)
					d.open(nil)
					check(file+" "+content, d.project)
				}
				d.write(file, `{"macos": `+text+`}`)
				d.open(nil)
				if got := d.tools(d.project); got != "" {
					t.Errorf("another platform's block stops tools: %s", got)
				}
				d.must(os.Remove(file))
			}
			d.open(func(o *Options) { o.Editor = []byte(text) })
			check("the editor's layer", d.project)
			d.write(filepath.Join(d.project, ".zed/settings.json"), text)
			d.open(nil)
			check("the project's file", d.project)
			if got := d.tools(d.home); got != "" {
				t.Errorf("another project: %s", got)
			}
		})
	}
}

func TestDoubt_AMistakeInAFileThatWasGood(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true, "apply_to": "terminal", `+
		`"system_paths": {"executable": ["/usr"]}, "allow_network": false}}}`)
	d.open(nil)
	check := func(content string, enabled bool, applyTo document.ApplyTo, executable int, network bool) {
		t.Helper()
		m := d.store.Snapshot("").Merged()
		found := 0
		if m.SystemPaths != nil {
			found = len(m.SystemPaths.Executable)
		}
		if *m.Enabled != enabled || *m.ApplyTo != applyTo || found != executable || *m.AllowNetwork != network {
			t.Errorf("%s: enabled %t, %s, %d system paths, network %t", content, *m.Enabled, *m.ApplyTo, found,
				*m.AllowNetwork)
		}
	}
	for _, step := range []struct {
		block      string
		applyTo    document.ApplyTo
		executable int
		network    bool
	}{
		// An unclear key keeps its value. A key that is gone is gone, and a new
		// one counts.
		{`"sandbox": {"enabled": "no", "on_denied": "ask"}`, document.ApplyToBoth, 0, true},
		{
			`"sandbox": {"enabeld": true, "apply_to": "tool", "system_paths": {"executable": ["/usr"]}}`,
			document.ApplyToTool, 1, true,
		},
		{`"sandbox": {"enabled": true, "aply_to": 1, "system_paths": 3}`, document.ApplyToTool, 1, true},
		{
			`"sandbox": {"enabled": 0, "apply_to": 0, "system_paths": {"executable": true}}`,
			document.ApplyToTool, 1, true,
		},
		// If the block itself is unclear, all keys keep their values.
		{`"sandbx": {"enabled": false}`, document.ApplyToTool, 1, true},
		{`"sandbox": false`, document.ApplyToTool, 1, true},
	} {
		d.write(d.own, `{"terminal": {`+step.block+`}}`)
		check(step.block, true, step.applyTo, step.executable, step.network)
		if d.tools("") == "" {
			t.Errorf("%s: tools start", step.block)
		}
	}
	d.write(d.own, "{")
	check("broken", true, document.ApplyToTool, 1, true)
	if d.tools("") == "" {
		t.Error("broken behind a mistake: tools start")
	}
	d.write(d.own, disabled)
	check("right", false, document.ApplyToBoth, 0, true)
	if got := d.tools(""); got != "" {
		t.Errorf("right: %s", got)
	}
}

func TestDoubt_EmptyFiles(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "white space": " \n\t\r\n",
		"comments": "// mine\n/* all of it */", "a mark": "\ufeff",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			project := filepath.Join(d.project, ".zed/settings.json")
			for _, file := range []string{d.user, d.own, project} {
				d.write(file, enabled)
				d.open(nil)
				d.store.Snapshot(d.project)
				for _, broken := range []string{content, "{", content} {
					d.write(file, broken)
					if s := d.store.Snapshot(d.project); !*s.Merged().Enabled || len(s.DiagnosticsOf(file)) != 1 {
						t.Errorf("%s: %q: enabled %t, %v", file, broken, *s.Merged().Enabled, s.Diagnostics())
					}
				}
				// At the start, it counts as meant only in Zed's files.
				d.open(nil)
				s := d.store.Snapshot(d.project)
				got := s.DiagnosticsOf(file)
				if len(got) != 1 || !strings.Contains(got[0].Message, "write {}") ||
					(s.Compile(document.KindTool).Doubt != nil) != (file == d.own) {
					t.Errorf("%s at the start: %v, doubt %v", file, got, s.Compile(document.KindTool).Doubt)
				}
				d.write(file, "{}")
				if s := d.store.Snapshot(d.project); *s.Merged().Enabled || len(s.Diagnostics()) != 0 ||
					s.Compile(document.KindTool).Doubt != nil {
					t.Errorf("%s: {} is not taken for no settings: %v", file, s.Diagnostics())
				}
				d.must(os.Remove(file))
			}
		})
	}
}

func TestDoubt_ContentThatAskedForNothingIsNoGuide(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.own, "{}")
	d.open(nil)
	d.write(d.own, `{"terminal": {"sandbox": {"enabled": true}`)
	if got := d.tools(""); !strings.Contains(got, "not valid JSON") {
		t.Errorf("doubt: %q", got)
	}
}

func TestDoubt_NamedFile(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	path := filepath.Join(d.home, "mine.json")
	named := func(o *Options) { o.UserPath = path }
	expect := func(what, says string) {
		t.Helper()
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			doubt := d.store.Snapshot("").Compile(kind).Doubt
			if (doubt != nil && doubt.Refused && doubt.Named) != (says != "") || doubt != nil &&
				!strings.Contains(doubt.Message, says) {
				t.Errorf("%s: %s: doubt %v, want %q", what, kind, doubt, says)
			}
		}
	}
	d.open(named)
	expect("missing", "there is no such file")
	d.write(path, enabled)
	expect("there", "")
	d.must(os.Remove(path))
	expect("removed", "")
	if s := d.store.Snapshot(""); !*s.Merged().Enabled || len(s.DiagnosticsOf(path)) != 1 {
		t.Errorf("after it was removed: enabled %t, %v", *s.Merged().Enabled, s.Diagnostics())
	}
	d.open(named)
	expect("removed before the start", "there is no such file")
	d.must(os.Symlink("nowhere", path))
	expect("dangling", "symlink to a file that does not exist")
	d.must(os.Remove(path))
	d.write(path, "")
	expect("empty", "write {}")
	d.write(path, "{")
	expect("broken", "not valid JSON")
	d.write(path, "{}")
	expect("asks for nothing", "")
}

func TestDoubt_DirectoryThatIsADanglingSymlink(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]string{
		"the settings directory": ".config/sandbox-sidecar", "above it": ".config",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.open(nil)
			if got := d.tools(""); got != "" {
				t.Fatalf("an empty home directory: %s", got)
			}
			path := filepath.Join(d.home, link)
			d.must(os.MkdirAll(filepath.Dir(path), 0o700))
			d.must(os.Symlink("../unmounted/dotfiles", path))
			// A long path loses its middle.
			if got := d.tools(""); !strings.Contains(got, "/"+link+`" is a symlink that leads nowhere`) {
				t.Errorf("doubt: %q", got)
			}
			target := filepath.Join(filepath.Dir(path), "../unmounted/dotfiles")
			d.must(os.MkdirAll(target, 0o700))
			if got := d.tools(""); got != "" {
				t.Errorf("the directory is there: %s", got)
			}
			d.write(d.own, enabled)
			if !d.enabled() {
				t.Error("not enabled")
			}
			// If the directory disappears, the file keeps its content.
			d.must(os.Rename(target, target+"~"))
			if !d.enabled() {
				t.Error("an unmounted directory switches the sandbox off")
			}
		})
	}
}

// A file may have been copied to where its directory should be.
func TestDoubt_FileInThePlaceOfADirectory(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]string{
		"the settings directory": ".config/sandbox-sidecar", "above it": ".config",
	} {
		for _, linked := range []bool{false, true} {
			d := newFixture(t)
			d.open(nil)
			path := filepath.Join(d.home, place)
			if linked {
				d.write(filepath.Join(d.home, "file"), enabled)
				d.must(os.MkdirAll(filepath.Dir(path), 0o700))
				d.must(os.Symlink(filepath.Join(d.home, "file"), path))
			} else {
				d.write(path, enabled)
			}
			if got := d.tools(""); !strings.Contains(got, "/"+place+`" is a file and should be a directory`) {
				t.Errorf("%s: doubt: %q", name, got)
			}
			d.must(os.Remove(path))
			if got := d.tools(""); got != "" {
				t.Errorf("%s: it is gone: %s", name, got)
			}
		}
	}
}

// /dev/null as a home directory means that there is none.
func TestDoubt_NoHome(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.home, d.user = "/dev/null", "/dev/null/.config/zed/settings.json"
	d.open(nil)
	if got := d.tools(""); got != "" {
		t.Errorf("doubt: %s", got)
	}
}

// Content A asks for much and is not trusted; content B has a mistake where A
// asked. Trust in B must not cover what is kept of A.
func TestDoubt_WhatIsKeptIsNotTrusted(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.write(d.user, enabled)
	d.write(filepath.Join(d.home, "outside/x"), "")
	file := filepath.Join(d.project, ".zed/settings.json")
	asks := `{"terminal": {"sandbox": {"additional_read_only_paths": ["` + d.home + `/outside"]}}}`
	const wrong = `{"terminal": {"sandbox": {"additional_read_only_paths": 1}}}`
	private := func(o *Options) { o.UserPath = d.user }
	d.open(private)
	granted := func() string {
		compiled := d.store.Snapshot(d.project).Compile(document.KindTerminal)
		return settingstest.Access(compiled.Policy, d.home+"/outside/x").String()
	}
	trust := func(content string) error {
		d.write(file, content)
		_, err := d.store.Trust(d.project, "")
		return err
	}
	d.write(d.user, `{"terminal": {"sandbox": {"enabled": true, "system_paths": {"read_write": []}}}}`)
	before := granted()
	if err := trust(wrong); err == nil {
		t.Error("content that is wrong is trusted")
	}
	d.write(file, asks)
	d.store.Snapshot(d.project)
	d.write(file, wrong)
	if got := granted(); got != before {
		t.Errorf("granted: %s, without the project's file %s", got, before)
	}
	if err := trust(asks); err != nil || granted() == before {
		t.Errorf("control: %v, granted %s", err, granted())
	}
}
