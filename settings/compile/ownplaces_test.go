package compile

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

const (
	ownSettings = "/home/u/.config/sandbox-sidecar"
	ownState    = "/home/u/.local/state/sandbox-sidecar"
)

// compiledIn is the policy of a project, with a grant for writing; "" is none.
func compiledIn(t *testing.T, tree map[string]string, project, grant string) Result {
	t.Helper()
	settings := `{"enabled": true}`
	if grant != "" {
		settings = `{"enabled": true, "additional_read_write_paths": ["` + grant + `"]}`
	}
	s := snapshotOf(t, resolvetest.Tree(t, tree), settings, "")
	s.ProjectDir = project
	return s.Compile(document.KindTool)
}

func TestOwnPlaces_AreShutIfAGrantHoldsThem(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		userFile: "", "/home/u/.config/zed/keymap.json": "", "/home/u/.config/zed/themes/a.json": "",
		"/home/u/.config/zed/tasks.json": "", "/home/u/.config/zed/linked.json": "-> /home/u/x", "/home/u/x": "",
		"/home/u/project/": "", "/home/u/.local/state/": "", "/home/u/work/": "", "/tmp/": "",
	}
	const config, state = ownSettings + " /home/u/.config/zed", ownState
	for _, test := range []struct{ project, grant, shut string }{
		{"/home/u/project", "", ""},
		{"/home/u/project", "~/work", ""},
		{"/home/u", "", config + " " + state},
		{"/home", "", config + " " + state},
		{"/home/u/.config", "", config},
		{"/home/u/.local", "", state},
		{"/home/u/.local/state", "", state},
		{"/home/u/project", "~", config + " " + state},
		{"/home/u/project", "~/.config", config},
		{"/home/u/project", "~/.local", state},
		{"/home/u/project", "~/.local/state", state},
		{"/", "", ""},                     // nothing can be written
		{ownState, "", ""},                // nor here
		{"/home/u/project", ownState, ""}, // such a grant does not count
	} {
		c := compiledIn(t, tree, test.project, test.grant)
		for _, dir := range []string{ownSettings, "/home/u/.config/zed", ownState} {
			want := slices.Contains(strings.Fields(test.shut), dir)
			for _, name := range []string{"settings.json", "trust.json", "new"} {
				path := filepath.Join(dir, name)
				one, is := c.Policy.ProtectedAt(path)
				if is != want || is && (one.Path != dir || !one.Decides) || c.Policy.At(path).Has(policy.Write) {
					t.Errorf("project %s, grant %q: %s: %+v", test.project, test.grant, path, one)
				}
			}
			missing := dir != "/home/u/.config/zed"
			if made := slices.Contains(c.create, dir); made != (want && missing) {
				t.Errorf("project %s, grant %q: %s is made: %t", test.project, test.grant, dir, made)
			}
		}
	}
	c := compiledIn(t, tree, "/home/u", "")
	for name, editable := range map[string]bool{
		"keymap.json": true, "themes/a.json": true, "themes/new.json": true, "settings.json": false,
		"tasks.json": false, "linked.json": false, "new.json": false,
	} {
		if c.Policy.At("/home/u/.config/zed/"+name).Has(policy.Write) != editable {
			t.Errorf("%s: editable: %t", name, !editable)
		}
	}
}

func TestOwnPlaces_SymlinksToThemAreShut(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		ownSettings:                            "-> ../dotfiles/sidecar",
		"/home/u/dotfiles/sidecar/":            "",
		"/home/u/.config/zed/settings.json":    "-> ../../dotfiles/zed.json",
		"/home/u/dotfiles/zed.json":            "",
		ownState:                               "-> /srv/state",
		"/srv/state/":                          "",
		"/home/u/project/":                     "",
		"/home/u/.config/zed/themes/inner.txt": "",
	}
	c := compiledIn(t, tree, "/home/u/project", "~")
	links := map[string]bool{}
	for _, p := range c.Policy.Protected {
		if p.Link {
			links[p.Path] = true
		}
	}
	if len(links) != 2 || !links[ownSettings] || !links[ownState] {
		t.Errorf("links: %v", links)
	}
	for path, shut := range map[string]bool{
		"/home/u/dotfiles/sidecar/settings.json": true, "/home/u/dotfiles/zed.json": true,
		"/home/u/.config/zed/settings.json": true, "/home/u/dotfiles/other": false,
		"/home/u/.config/zed/themes/inner.txt": false,
	} {
		if c.Policy.At(path).Has(policy.Write) == shut {
			t.Errorf("%s: shut: %t", path, !shut)
		}
	}
}

// A session of a machine without mounts may have made such a link.
func TestOwnPlaces_AHomeDirectoryIsNone(t *testing.T) {
	t.Parallel()
	c := compiledIn(t, map[string]string{ownSettings: "-> /home/u", "/home/u/project/": ""}, "/home/u/project", "")
	if !c.Policy.At("/home/u/project/file").Has(policy.Write) {
		t.Errorf("the project cannot be written: %+v", c.Policy.Protected)
	}
}

// No cache is made where a symlink in the project leads: a session may have made
// the symlink, and the cache does not count.
func TestCaches_AreNotMadeBehindSymlinksOfSessions(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/home/u/project/.cargo/bin/cargo": "", "/home/u/project/.cargo/git": "-> /home/u/new/git",
		"/srv/cargo/bin/cargo": "",
	}
	s := snapshotOf(t, resolvetest.Tree(t, tree), `{"enabled": true, "toolchains": ["rust"]}`, "")
	for home, want := range map[string]bool{"/home/u/project/.cargo": false, "/srv/cargo": true} {
		s.Host.Env["CARGO_HOME"] = home
		c := New(s.Input, nil, nil).Compile(document.KindTool)
		made := slices.ContainsFunc(c.create, func(dir string) bool { return strings.HasSuffix(dir, "/git") })
		if made != want {
			t.Errorf("%s: made %t: %q", home, made, c.create)
		}
	}
}
