package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/places"
	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
)

// noted is a user whose settings are where XDG_CONFIG_HOME says.
type noted struct {
	*fixture
	config string
}

func newNoted(t *testing.T) *noted {
	t.Helper()
	d := &noted{fixture: newFixture(t)}
	d.must(os.MkdirAll(d.project, 0o755))
	d.config = filepath.Join(d.home, "configuration")
	d.settings(d.config, enabled)
	return d
}

func (d *noted) settings(config, text string) {
	d.t.Helper()
	d.write(filepath.Join(config, "sandbox-sidecar/settings.json"), text)
}

// under is a store for which a variable names a directory of settings.
func (d *noted) under(config string, more ...func(*Options)) *Store {
	d.t.Helper()
	return d.open(func(o *Options) {
		o.Home, o.Account, o.Env = "", d.home, []string{"HOME=" + d.home, "XDG_CONFIG_HOME=" + config}
		for _, change := range more {
			change(o)
		}
	})
}

// confines has a session noted that may write its project and some directories.
func confines(s *Store, project string, writable ...string) {
	p := s.Snapshot(project).Compile(document.KindTool).Policy
	p.Rules = nil
	for _, path := range writable {
		p.Rules = append(p.Rules, policy.Rule{Path: path, Access: policy.Read | policy.Write})
	}
	s.Confines(project, &p)
}

// judged says what becomes of a session: whether it starts, and whether what
// the file says counts in full.
func judged(s *Store, project string) string {
	c := s.Snapshot(project).Compile(document.KindTool)
	word := "off"
	switch {
	case c.Doubt != nil:
		return "refused"
	case c.Policy.Restricted:
		word = "confined"
	}
	for _, d := range c.Diagnostics {
		if strings.Contains(d.Message, "can only tighten") {
			word += ", tightened"
		}
	}
	return word
}

func TestNoted_WhatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(d *noted)
		then   func(d *noted) *Store
		want   string
	}{
		"a first use":       {func(*noted) {}, func(d *noted) *Store { return d.under(d.home + "/empty") }, "off"},
		"where they are":    {nil, func(d *noted) *Store { return d.under(d.config) }, "confined"},
		"another directory": {nil, func(d *noted) *Store { return d.under(d.home + "/empty") }, "refused"},
		"a file for the editor": {
			nil, func(d *noted) *Store {
				d.write(d.user, `{"theme": "One Dark"}`)
				return d.under(d.home + "/empty")
			}, "refused",
		},
		"an unset variable": {nil, func(d *noted) *Store { return d.under("") }, "refused"},
		"another home": {
			nil, func(d *noted) *Store {
				return d.under("", func(o *Options) { o.Env = []string{"HOME=" + d.project} })
			}, "refused",
		},
		"a named file": {
			nil, func(d *noted) *Store {
				d.write(d.home+"/named.json", `{}`)
				return d.under(d.home+"/empty", func(o *Options) { o.UserPath = d.home + "/named.json" })
			}, "off",
		},
		"other settings of the user's": {
			nil, func(d *noted) *Store {
				d.settings(d.home+"/moved", enabled)
				return d.under(d.home + "/moved")
			}, "refused",
		},
		"they turn it off": {
			nil, func(d *noted) *Store {
				d.settings(d.config, disabled)
				return d.under(d.config)
			}, "off",
		},
		"they are moved home": {
			nil, func(d *noted) *Store {
				d.write(d.own, enabled)
				return d.under(d.home + "/empty")
			}, "confined",
		},
		"a repository was not there before": {
			nil, func(d *noted) *Store {
				d.must(os.Mkdir(d.config+"/.git", 0o700))
				return d.under(d.config)
			}, "confined, tightened",
		},
		"a cloned project brings them": {
			nil, func(d *noted) *Store {
				d.settings(d.project+"/c", disabled)
				return d.under(d.project + "/c")
			}, "refused",
		},
		"they were at home": {
			func(d *noted) {
				d.write(d.own, enabled)
				confines(d.under(""), d.project)
				d.must(os.Remove(d.own))
			}, func(d *noted) *Store { return d.under(d.home + "/empty") }, "refused",
		},
		"the session had a file of the caller's": {
			func(d *noted) {
				named := d.config + "/sandbox-sidecar/settings.json"
				confines(d.under("", func(o *Options) { o.UserPath = named }), d.project)
			}, func(d *noted) *Store { return d.under(d.home + "/empty") }, "off",
		},
		"a session of other settings could write them": {
			func(d *noted) {
				confines(d.under(d.config), d.project)
				named := d.home + "/named.json"
				d.write(named, enabled)
				confines(d.under("", func(o *Options) { o.UserPath = named }), d.project, d.config)
			}, func(d *noted) *Store { return d.under(d.config) }, "refused",
		},
		"a session of theirs could write around them": {
			func(d *noted) { confines(d.under(d.config), d.project, d.home) },
			func(d *noted) *Store { return d.under(d.config) }, "confined",
		},
		"a note without a name": {
			func(d *noted) {
				confines(d.under(d.config), d.project)
				note := filepath.Join(places.User{Home: d.home}.Counted(), places.Note(d.config))
				d.must(os.Truncate(note, 0))
				confines(d.under(d.config), d.project, d.home)
			}, func(d *noted) *Store { return d.under(d.config) }, "confined",
		},
		"the session had another home": {
			func(d *noted) {
				confines(d.under(d.config, func(o *Options) { o.Env[0] = "HOME=" + d.project }), d.project)
			}, func(d *noted) *Store { return d.under(d.home + "/empty") }, "off",
		},
		"the home has another name": {
			func(d *noted) {
				d.must(os.Symlink(d.home, d.home+"-link"))
				confines(d.under(d.config, func(o *Options) { o.Env[0] = "HOME=" + d.home + "-link" }), d.project)
			}, func(d *noted) *Store { return d.under(d.home + "/empty") }, "refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newNoted(t)
			if test.before == nil {
				test.before = func(d *noted) { confines(d.under(d.config), d.project) }
			}
			test.before(d)
			s := test.then(d)
			if got := judged(s, d.project); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if gone := s.Gone(); (gone != "") != (test.want == "refused") && name != "a cloned project brings them" {
				t.Errorf("said: %q", gone)
			}
		})
	}
}

// What a session could write is no place for settings, unless they counted there
// before.
func TestNoted_WhatSessionsCouldWrite(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wrote  []string // below the home directory
		before bool     // the settings counted there before
		want   string
	}{
		"nothing":                     {nil, false, "confined"},
		"a directory beside it":       {[]string{"configuration-2", "config"}, false, "confined"},
		"the directory":               {[]string{"configuration"}, false, "confined, tightened"},
		"one above it":                {[]string{""}, false, "confined, tightened"},
		"one in it":                   {[]string{"configuration/sandbox-sidecar"}, false, "confined, tightened"},
		"the directory, after":        {[]string{"configuration"}, true, "confined"},
		"one above it, after":         {[]string{"", "configuration/sandbox-sidecar"}, true, "confined"},
		"a file is no directory":      {[]string{"configuration/sandbox-sidecar/settings.json"}, false, "confined"},
		"a directory that is missing": {[]string{"missing"}, false, "confined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newNoted(t)
			var wrote []string
			for _, path := range test.wrote {
				wrote = append(wrote, filepath.Join(d.home, path))
				if strings.HasPrefix(path, "config") && !strings.Contains(path, "/") {
					d.must(os.MkdirAll(filepath.Join(d.home, path), 0o700))
				}
			}
			config := d.home + "/first"
			d.settings(config, enabled)
			if test.before {
				config = d.config
			}
			confines(d.under(config), d.project, wrote...)
			if !test.before { // else it would be refused
				d.must(os.RemoveAll(places.User{Home: d.home}.Counted()))
			}
			if got := judged(d.under(d.config), d.project); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A set for an agent is the user's own as far as settings beside it are.
func TestNoted_SetsForAgents(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config        string
		counted, home bool // while a session could write the home directory
		finds         bool
	}{
		"no session":            {"configuration", false, false, true},
		"a session could write": {"configuration", false, true, false},
		"settings counted":      {"configuration", true, true, true},
		"at home":               {".config", false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newNoted(t)
			config := filepath.Join(d.home, test.config)
			d.write(filepath.Join(config, "sandbox-sidecar/agents/mine.json"), `{"program": "mine"}`)
			first := d.home + "/first"
			if test.counted {
				first = config
			}
			if test.home {
				confines(d.under(first), d.project, d.home)
			}
			host := resolve.NewHost("linux", d.home, []string{"XDG_CONFIG_HOME=" + config})
			host.Account = d.home
			dir := host.Kept().Agents()
			why := movable(dir, filepath.Join(dir, "mine.json"), d.project, host)
			if (why == "") != test.finds {
				t.Errorf("found: %q", why)
			}
		})
	}
}

// Thousands of grants leave a bounded number of notes.
func TestNoted_IsBounded(t *testing.T) {
	t.Parallel()
	d := newNoted(t)
	var wrote []string
	for i := range 2 * maxWritten {
		wrote = append(wrote, fmt.Sprintf("%s/many/%d", d.home, i))
		d.must(os.MkdirAll(wrote[i], 0o700))
	}
	confines(d.under(d.config), d.project, wrote...)
	notes, err := os.ReadDir(places.User{Home: d.home}.Written())
	if err != nil || len(notes) > maxWritten || len(notes) < maxWritten/2 {
		t.Errorf("%d notes: %v", len(notes), err)
	}
}
