package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

// describeMode sums up what a mode decides about.
func describeMode(c Result) string {
	if !c.Policy.Restricted {
		return "off"
	}
	network := "offline"
	if c.Policy.Network.Allowed {
		network = "online"
	}
	return fmt.Sprintf("%s, a: %s, ssh: %s, usr: %s, project: %s, %s", network, accessOf(c, "/srv/a"),
		accessOf(c, "/home/u/.ssh/id"), accessOf(c, "/usr/bin/x"), accessOf(c, "/home/u/project/x"),
		c.Policy.OnUnavailable)
}

func TestModes_SetSeveralKeys(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/srv/a/": "", "/home/u/.ssh/id": "", "/usr/bin/x": "", "/home/u/project/": "",
	})
	const (
		all      = "read,write,execute"
		strict   = "offline, a: none, ssh: none, usr: read,execute, project: " + all + ", refuse"
		standard = "online, a: none, ssh: none, usr: read,execute, project: " + all + ", refuse"
		relaxed  = "online, a: read,execute, ssh: read,execute, usr: read,execute, project: " + all + ", refuse"
	)
	granted := strings.Replace(strict, "a: none", "a: read", 1)
	for _, test := range []struct{ user, project, want string }{
		{`{"mode": "strict"}`, ``, strict},
		{`{"mode": "standard"}`, ``, standard},
		{`{"mode": "relaxed"}`, ``, relaxed},
		{`{"mode": "off"}`, ``, "off"},
		{`{"mode": null}`, ``, "off"},
		// The keys beside a mode override it.
		{`{"mode": "strict", "additional_read_only_paths": ["/srv/a"]}`, ``, granted},
		{`{"mode": "strict", "enabled": false}`, ``, "off"},
		{`{"mode": "relaxed", "allow_network": false}`, ``, strings.Replace(relaxed, "online", "offline", 1)},
		{`{"enabled": true, "mode": "off"}`, ``, standard},
		// A mode in the block for a kind overrides the keys outside of it.
		{
			`{"allow_network": true, "additional_read_only_paths": ["/srv/a"],
				"tool": {"mode": "strict"}}`, ``, strict,
		},
		{`{"mode": "strict", "tool": {"mode": "off"}}`, ``, "off"},
		{`{"mode": "off", "tool": {"mode": "strict"}}`, ``, strict},
		{`{"mode": "relaxed", "tool": {"mode": "standard"}}`, ``, standard},
		{`{"mode": "strict", "additional_read_only_paths": ["/srv/a"], "tool": {"mode": "strict"}}`, ``, strict},
		{`{"apply_to": "terminal", "tool": {"mode": "strict"}}`, ``, strict},
		// A project's mode only tightens.
		{`{"mode": "standard"}`, `{"mode": "off"}`, standard},
		{`{"mode": "strict"}`, `{"mode": "relaxed"}`, strict},
		{`{"mode": "standard"}`, `{"mode": "relaxed", "tool": {"mode": "off"}}`, standard},
		{`{"mode": "relaxed", "additional_read_write_paths": ["/srv/a"]}`, `{"mode": "strict"}`, strict},
		{`{}`, `{"tool": {"mode": "strict"}}`, strict},
		{`{}`, `{"mode": "relaxed"}`, standard},
	} {
		if got := describeMode(snapshotOf(t, f, test.user, test.project).Compile(document.KindTool)); got != test.want {
			t.Errorf("user    %s\nproject %s\ngot  %s\nwant %s", test.user, test.project, got, test.want)
		}
	}
}

// strict opens nothing that the defaults keep closed, whatever the layers below
// open, except what was protected in them.
func TestModes_StrictIsWithinTheDefaults(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	defaults := snapshotOf(t, f, `{"enabled": true}`, "").Compile(document.KindTool)
	settingstest.ForPairs(t, 200, func(user, _ string) {
		user = `{"allowed_env_vars": [], "on_denied": "report", "allow_network": true, "protected_paths": [],
			"additional_read_only_paths": ` + meetList(user) + `, "additional_read_write_paths": ` + meetList(user) + `,
			"tool": {"mode": "strict"}}`
		c := snapshotOf(t, f, user, "").Compile(document.KindTool)
		if how := exceeds(&c.Policy, &defaults.Policy); how != "" {
			t.Errorf("%s: %s", user, how)
		}
	})
}

// meetList is a list of paths that depends on a generated block.
func meetList(block string) string {
	paths := settingstest.Paths
	return fmt.Sprintf("[%q, %q]", paths[len(block)%len(paths)], paths[len(block)/7%len(paths)])
}

// The command line counts more than every file, a trusted project's included;
// only an untrusted project may still tighten.
func TestCommand_IsTheTopLayer(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	command := func(s *Snapshot, block string) *Snapshot {
		state := settingstest.State(t, policy.OriginCommand, block)
		s.Command = &state
		return s
	}
	const user = `{"enabled": false, "tool": {"enabled": false, "allow_network": true}}`
	for block, want := range map[string]string{
		`{"mode": "strict"}`:                    "true false command line",
		`{"enabled": true, "apply_to": "both"}`: "true true command line",
		`{"mode": "off"}`:                       "false true command line",
	} {
		s := command(trusting(t, f, user, `{"mode": "relaxed"}`), block)
		if !s.Project().Trusted || len(s.Files()) != 2 {
			t.Errorf("trusted %t, files %q", s.Project().Trusted, s.Files())
		}
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			c := s.Compile(kind)
			for _, sw := range c.Switches {
				got := fmt.Sprint(c.Policy.Restricted, c.Policy.Network.Allowed, " ", sw.Origin.File)
				if sw.Key == "enabled" && got != want {
					t.Errorf("%s: %s: %s, want %s", block, kind, got, want)
				}
			}
		}
	}
	s := command(snapshotOf(t, f, user, `{"mode": "strict"}`), `{"mode": "relaxed"}`)
	if s.Compile(document.KindTool).Policy.Network.Allowed {
		t.Error("a project cannot tighten what the command line says")
	}
}
