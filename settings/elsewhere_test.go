package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// A home that is another user's and closed has no settings of this user. One
// that the user has closed has, and they are in doubt.
func TestOwnHome(t *testing.T) {
	t.Parallel()
	mine := t.TempDir()
	if err := os.Chmod(mine, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(mine, 0o700) })
	missing := filepath.Join(t.TempDir(), "missing")
	const root = "/root"
	_, err := os.Lstat(filepath.Join(root, ".config"))
	for home, want := range map[string]string{mine: mine, missing: missing, "/": "/", root: root} {
		if home == root && errors.Is(err, fs.ErrPermission) {
			want = ""
		}
		if got := ownHome(home); got != want {
			t.Errorf("%s: %q, want %q", home, got, want)
		}
	}
}

// A file that only tightens decides nothing in which it has no say, and is no
// organisation's.
func TestElsewhere_HasNoSayInWhatProjectsHaveNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"shell": ["zsh"]}`, `{"audit": "file"}`, `{"audit_required": true}`, `{"on_denied": "ignore"}`,
		`{"process_tracking": "seatbelt"}`, `{"tool": {"on_denied": "ignore"}}`, `{"tool": {"allow_network": false}}`,
		`{"terminal": {"allow_network": false}}`, `{"allow_network": false}`,
	} {
		s := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true, "on_denied": "ask"}`, "")
		states := []source.State{settingstest.State(t, "/elsewhere/settings.json", text)}
		s.UserStates = append(s.UserStates, onlyTightening(states, "why")...)
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			if got := *s.MergedFor(kind).OnDenied; got != document.OnDeniedAsk {
				t.Errorf("%s of the %s: on_denied is %s, by %s", text, kind, got, s.Origins()["on_denied"])
			}
		}
	}
	// A suggestion would bound what it lists there.
	for name, state := range map[string]source.State{
		"empty":   settingstest.State(t, "/elsewhere/settings.json", `{}`),
		"missing": {File: "/elsewhere/settings.json"},
	} {
		s := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true}`, "")
		s.UserStates = append(s.UserStates, onlyTightening([]source.State{state}, "why")...)
		file, err := fileOfUser(s, "additional_read_only_paths")
		if err != nil || file != settingstest.UserFile {
			t.Errorf("%s: a suggestion goes to %s, %v", name, file, err)
		}
	}
}

// TestElsewhere_WithoutSettingsAtHome has a variable name settings, while there
// are none at the home directory of the user database. What a session may have
// made only tightens.
func TestElsewhere_WithoutSettingsAtHome(t *testing.T) {
	t.Parallel()
	const opens = `{"terminal": {"sandbox": {"enabled": true, "additional_read_only_paths": ["/srv/data"]}}}`
	for name, test := range map[string]struct {
		config  string // below the home directory
		prepare func(d *fixture, file string)
		why     string // "": the file counts as it is written
	}{
		"a place of the user's":        {config: "configuration"},
		"the project":                  {config: "project/x/.config", why: "it is in the project"},
		"another project":              {config: "other/.config", why: "it is in the project"},
		"a directory beside a project": {config: "project.old"},
		"a link out of the project": {
			config: "project/link", why: "it is in the project",
			prepare: func(d *fixture, file string) { d.moveAway("project/link", "elsewhere") },
		},
		"a link into the project": {
			config: "link", why: "it is in the project",
			prepare: func(d *fixture, file string) { d.moveAway("link", "project/deep/config") },
		},
		"a repository": {
			config: "work/repository/deep/.config", why: "it is in a git repository",
			prepare: func(d *fixture, file string) { d.must(os.MkdirAll(d.home+"/work/repository/.git", 0o755)) },
		},
		"a link to dotfiles in a repository": {
			config: "configuration",
			prepare: func(d *fixture, file string) {
				d.must(os.MkdirAll(d.home+"/dotfiles/.git", 0o755))
				d.moveAway("configuration/sandbox-sidecar", "dotfiles/sidecar")
			},
		},
		"a repository around the home directory": {
			config:  "configuration",
			prepare: func(d *fixture, file string) { d.must(os.MkdirAll(d.home+"/.git", 0o755)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			config := filepath.Join(d.home, test.config)
			d.write(filepath.Join(config, "sandbox-sidecar/settings.json"), opens)
			d.must(os.MkdirAll(d.project, 0o755))
			if test.prepare != nil {
				test.prepare(d, filepath.Join(config, "sandbox-sidecar/settings.json"))
			}
			store := d.open(func(o *Options) {
				o.Account, o.Env = d.home, []string{"XDG_CONFIG_HOME=" + config}
			})
			store.Remember(d.home + "/other")
			c := store.Snapshot(d.project).Compile(document.KindTool)
			if opened := c.Policy.At("/srv/data/x").Has(policy.Read); opened != (test.why == "") {
				t.Errorf("opened: %t", opened)
			}
			said := settingstest.Said(c.Diagnostics, filepath.Join(config, "sandbox-sidecar/settings.json"))
			if strings.Contains(said, "can only tighten: "+test.why) != (test.why != "") {
				t.Errorf("diagnostics, want %q:\n%s", test.why, said)
			}
			if !c.Policy.Restricted {
				t.Error("the file turns the sandbox on, and it is off")
			}
		})
	}
}

// TestElsewhere_AnotherUsersFileTightens needs root, to make such a file.
func TestElsewhere_AnotherUsersFileTightens(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes files of others")
	}
	d := newFixture(t)
	file := filepath.Join(d.home, "configuration/sandbox-sidecar/settings.json")
	d.write(file, enabled)
	for owner, doubtful := range map[int]bool{0: false, 12345: true} {
		d.must(os.Chown(file, owner, owner))
		store := d.open(func(o *Options) {
			o.Account, o.Env = d.home, []string{"XDG_CONFIG_HOME=" + d.home + "/configuration"}
		})
		c := store.Snapshot(d.project).Compile(document.KindTool)
		if got := strings.Contains(settingstest.Said(c.Diagnostics, file), "another user's"); got != doubtful {
			t.Errorf("owner %d: doubtful: %t", owner, got)
		}
	}
}

// moveAway puts a symlink in the place of a directory. Both are below the home
// directory.
func (d *fixture) moveAway(from, to string) {
	d.t.Helper()
	from, to = filepath.Join(d.home, from), filepath.Join(d.home, to)
	d.must(os.MkdirAll(filepath.Dir(to), 0o755))
	d.must(os.Rename(from, to))
	d.must(os.Symlink(to, from))
}
