package document

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// saidOf decodes a Zed file and returns the block, and its problems one a line.
func saidOf(t *testing.T, text string, whose Owner) (*Block, string) {
	t.Helper()
	block, problem := Decode([]byte(text), "linux", whose)
	if problem != nil {
		t.Fatalf("%s: %v", text, problem)
	}
	var lines []string
	for _, p := range block.Problems {
		lines = append(lines, p.String())
	}
	return block, strings.Join(lines, "\n")
}

// Nothing that Zed reads only at times counts here, and nothing of it is left
// out silently.
func TestDecode_ChannelsAndProfilesOfZedDoNotCount(t *testing.T) {
	t.Parallel()
	const (
		channel = "nobody tells the sidecar which release channel of Zed runs"
		profile = "nobody tells the sidecar which profile of Zed is chosen"
	)
	for _, test := range []struct {
		text string
		want string // "" is nothing; "!" begins an error
	}{
		{
			`{"preview": {"terminal": {"sandbox": {"enabled": true}}}}`,
			`!1:38: error: "preview.terminal.sandbox" has no effect: ` + channel + `; settings belong in`,
		},
		{`{"stable": {"terminal": {"sandbox": {"enabled": false}}}}`, `!1:37: error: "stable.terminal.sandbox" has no`},
		{`{"nightly": {"terminal": {"sandbox": "x"}}}`, `!1:38: error: "nightly.terminal.sandbox" has no`},
		{`{"dev": {"terminal": {"sandbox": {"future": 1}}}}`, `!1:34: error: "dev.terminal.sandbox" has no`},
		{`{"dev": {"terminal": {"sandbox": null}}}`, ""},
		{`{"dev": {"terminal": {"sandbox": {}}}}`, ""},
		{`{"dev": {"terminal": null}, "preview": null, "stable": [], "nightly": "x"}`, ""},
		{
			`{"beta": {"terminal": {"sandbox": {"enabled": true}}}}`,
			`!1:2: error: the terminal.sandbox in "beta" has no effect`,
		},
		{
			`{"profiles": {"p": {"settings": {"terminal": {"sandbox": {"enabled": true}}}}}}`,
			`!1:58: error: "profiles.p.settings.terminal.sandbox" has no effect: ` + profile,
		},
		{
			`{"profiles": {"p": {"terminal": {"sandbox": {"enabled": true}}}}}`,
			`!1:45: error: "profiles.p.terminal.sandbox" has no effect: ` + profile,
		},
		{`{"profiles": {"p": {"base": "user", "settings": {"theme": "One"}}, "q": null, "r": []}}`, ""},
		{`{"profiles": []}`, ""},
		{`{"profiles": null}`, ""},
		{
			`{"preview": {"linux": {"terminal": {"sandbox": {"enabled": true}}}}}`,
			`!1:14: error: the terminal.sandbox in "preview.linux" has no effect`,
		},
		{`{"preview": {"sandbox": {"enabled": true}}}`, `!1:14: error: "preview.sandbox" is in the wrong place`},
		{`{"preview": {"terminal": {"enabled": true}}}`, `!1:27: error: "preview.terminal.enabled" has no effect`},
		{
			`{"preview": {"agent": {"sandbox_permissions": {"allow_all_hosts": true}}}}`,
			`1:47: warning: "preview.agent.sandbox_permissions" has no effect here: ` + channel,
		},
		{`{"preview": {"agent": {"sandbox": {"enabled": true}}}}`, `!1:24: error: "preview.agent.sandbox" has`},
		{
			`{"preview": {"terminal": {"shell": {"program": "x"}}}}`,
			`1:36: info: "preview.terminal.shell" has no effect on sandboxed sessions: ` + channel,
		},
		{
			`{"preview": {"terminal": {"env": {"A": "b"}}}}`,
			`1:34: info: "preview.terminal.env" has no effect on sandboxed sessions: ` + channel,
		},
		{`{"preview": {}, "preview": {"terminal": {"sandbox": {"enabled": true}}}}`, `!1:53: error: "preview.terminal`},
	} {
		for _, whose := range []Owner{Editor, Project} {
			block, got := saidOf(t, test.text, whose)
			want, stops := strings.CutPrefix(test.want, "!")
			if want == "" && got != "" || !strings.Contains(got, want) || (block.FirstError != nil) != stops {
				t.Errorf("%s: said %q, stops tools: %t; want %q", test.text, got, block.FirstError != nil, test.want)
			}
			if block.HasSettings() || block.Agent != nil || block.EditorShell != nil {
				t.Errorf("%s: something of it counts", test.text)
			}
		}
	}
}

func TestDecode_SettingsAtZedsOwnPlacesAreReported(t *testing.T) {
	t.Parallel()
	const right = `, "terminal": {"sandbox": {"enabled": true}}`
	for _, test := range []struct{ text, want string }{
		{`{"agent": {"sandbox": {"enabled": true}}}`, `!1:12: error: "agent.sandbox" has no effect; settings belong in`},
		{`{"agent": {"sandbox": {"image": "x"}}}`, ""},
		{`{"agent": {"sandbox": true}}`, ""},
		{`{"agent": {"apply_to": "tool"}}`, `!1:12: error: "agent.apply_to" has no effect`},
		{`{"agent": {"sandbox.enabled": true}}`, `!1:12: error: "agent.sandbox.enabled" has no effect`},
		{
			`{"agent": {"terminal": {"sandbox": {"enabled": true}}}}`,
			`!1:2: error: the terminal.sandbox in "agent" has no effect`,
		},
		{`{"linux": {"agent": {"sandbox": {"enabled": true}}}}`, `!1:22: error: "linux.agent.sandbox" has no effect`},
		{
			`{"terminal": {"env": {"A": "b"}, "sandbox": {"enabled": true}}}`,
			`1:22: info: terminal.env has no effect on sandboxed sessions: only their editor sets`,
		},
		{`{"terminal": {"env": {}, "sandbox": {"enabled": true}}}`, ""},
		// The settings of sandboxes may be in the sidecar's own file.
		{`{"terminal": {"env": {"A": "b"}}}`, `1:22: info: terminal.env has no effect on sandboxed sessions`},
		{`{"linux": {"terminal": {"env": {"A": "b"}}}}`, `1:32: info: linux.terminal.env has no effect on sandboxed`},
		{`{"macos": {"terminal": {"env": {"A": "b"}}}}`, ""},
		{`{"agent": null}`, ""},
		{`{"agent": []}`, ""},
		{`{"terminal": {"mode": "strict"}}`, `!1:15: error: "terminal.mode" has no effect`},
		{`{"terminal": {"mode": "dark"}}`, ""},
		{`{"mode": "strict"}`, `!1:2: error: "mode" has no effect`},
		{`{"toolchains": ["go"]}`, `!1:2: error: "toolchains" has no effect`},
		{`{"shell": ["zsh"]}`, `!1:2: error: "shell" has no effect`},
		{`{"tool": {"enabled": true}}`, `!1:2: error: "tool" has no effect`},
		{`{"enabled": 1, "mode": 2, "toolchains": {}, "shell": "x", "tool": []}`, ""},
		// Beside settings in the right place it may be another program's.
		{`{"enabled": true` + right + `}`, `1:2: warning: "enabled" has no effect`},
		{`{"deep": ` + strings.Repeat(`{"a": `, 400) + `{"terminal": {"sandbox": {"enabled": true}}}` +
			strings.Repeat("}", 400) + `}`, `!1:2: error: the terminal.sandbox in "deep" has no effect`},
	} {
		block, got := saidOf(t, test.text, Editor)
		want, stops := strings.CutPrefix(test.want, "!")
		if want == "" && got != "" || !strings.Contains(got, want) || (block.FirstError != nil) != stops {
			t.Errorf("%s: said %q, stops tools: %t; want %q", test.text, got, block.FirstError != nil, test.want)
		}
	}
}

// Zed merges the permissions of the running system's object: lists grow, and the
// later switch counts.
func TestDecode_PermissionsOfASystemCountAsInZed(t *testing.T) {
	t.Parallel()
	const paths, hosts = "additional_read_write_paths", "allowed_hosts"
	for _, test := range []struct {
		base, linux string
		paths       []string
		network     bool
	}{
		{`{"write_paths": ["/a"]}`, `{"write_paths": ["/b"]}`, []string{"/a", "/b"}, false},
		{`{}`, `{"write_paths": ["/b"]}`, []string{"/b"}, false},
		{`{"write_paths": ["/a"]}`, `{"write_paths": null}`, []string{"/a"}, false},
		{`{"write_paths": ["/a"]}`, `null`, []string{"/a"}, false},
		{`{"allow_all_hosts": true}`, `{}`, nil, true},
		{`{"allow_all_hosts": true}`, `{"allow_all_hosts": false}`, nil, false},
		{`{"allow_all_hosts": true}`, `{"allow_all_hosts": "x"}`, nil, true},
		{`{"allow_all_hosts": false}`, `{"allow_all_hosts": true}`, nil, true},
		{`{"allow_all_hosts": true, "allow_all_hosts": true}`, `{}`, nil, false},
		{
			`{"write_paths": [{"requested": "/l", "resolved": "/a"}, {"requested": "/b"}, {"x": 1}, 2]}`, `{}`,
			[]string{"/a", "/b"},
			false,
		},
	} {
		text := fmt.Sprintf("{\"agent\": {\"sandbox_permissions\": %s},\n"+
			"\"linux\": {\"agent\": {\"sandbox_permissions\": %s}},\n"+
			"\"macos\": {\"agent\": {\"sandbox_permissions\": {\"write_paths\": [\"/mac\"]}}}}", test.base, test.linux)
		block, said := saidOf(t, text, Editor)
		agent := block.Agent
		if agent == nil {
			agent = &Agent{}
		}
		if got := agent.Values.List(paths); !slices.Equal(got, test.paths) {
			t.Errorf("%s: paths %q, want %q", text, got, test.paths)
		}
		if span := agent.Spans[paths]; len(span.Elements) != len(test.paths) {
			t.Errorf("%s: %d positions of %d entries", text, len(span.Elements), len(test.paths))
		}
		if network := agent.Values.AllowNetwork != nil && *agent.Values.AllowNetwork; network != test.network {
			t.Errorf("%s: all hosts %t, want %t", text, network, test.network)
		}
		if block.FirstError != nil {
			t.Errorf("%s: stops tools: %s", text, said)
		}
		if project, _ := saidOf(t, text, Project); project.Agent != nil {
			t.Errorf("%s: counts in a project", text)
		}
	}
	block, _ := saidOf(t, "{\"agent\": {\"sandbox_permissions\": {\"network_hosts\": [\"a.org\"]}},\n"+
		"\"linux\": {\"agent\": {\"sandbox_permissions\": {\"network_hosts\": [\"b.org\"]}}}}", Editor)
	want := []Position{{1, 54}, {2, 63}}
	if got := block.Agent.Spans[hosts].Elements; !reflect.DeepEqual(got, want) {
		t.Errorf("the hosts stand at %v, want %v", got, want)
	}
}

func TestDecode_PermissionsThatDoNotCountAreNamed(t *testing.T) {
	t.Parallel()
	for permissions, want := range map[string]string{
		`{"enabled": true}`:                         "agent.sandbox_permissions.enabled: has no effect: only enabled in terminal.sandbox",
		`{"enabled": false}`:                        "agent.sandbox_permissions.enabled: has no effect",
		`{"allow_network": true}`:                   "allow_network: has no effect: Zed calls it allow_all_hosts",
		`{"apply_to": "tool"}`:                      "agent.sandbox_permissions.apply_to: has no effect; settings belong in",
		`{"allow_all_hosts": 1}`:                    "allow_all_hosts: expected true or false, found a number",
		`{"allow_unsandboxed": {}}`:                 "allow_unsandboxed: expected true or false, found an object",
		`{"write_paths": [["/a"]]}`:                 "write_paths: expected a string, found an array; the other entries count",
		`{"write_paths": 1, "write_paths": ["/a"]}`: "write_paths: written twice; it does not count",
		`[1]`: "agent.sandbox_permissions: expected an object, found an array",
	} {
		block, got := saidOf(t, `{"agent": {"sandbox_permissions": `+permissions+`}}`, Editor)
		if !strings.Contains(got, want) || !strings.Contains(got, "warning: ") || block.FirstError != nil {
			t.Errorf("%s: said %q, want a warning with %q", permissions, got, want)
		}
		if block.Agent != nil && len(block.Agent.Values.List("additional_read_write_paths")) > 0 ||
			block.Agent != nil && block.Agent.Values.AllowNetwork != nil {
			t.Errorf("%s: opens something", permissions)
		}
	}
	if _, got := saidOf(t, `{"agent": {"sandbox_permissions": {"warn_confusable_unicode": true, "enabled": null}}}`,
		Editor); got != "" {
		t.Errorf("Zed's own permission: said %q", got)
	}
	many := `{"agent": {"sandbox_permissions": {"write_paths": [` + strings.Repeat(`"/a", `, 100_000) + `"/b"]}}}`
	if block, _ := saidOf(t, many, Editor); len(block.Agent.Values.List("additional_read_write_paths")) != 100_001 {
		t.Error("a long list is cut")
	}
}

// What is misplaced does not stop tools if the file has settings in the right
// place, be it that of one platform.
func TestDecode_SettingsInTheRightPlaceExcuseCommonWords(t *testing.T) {
	t.Parallel()
	const right = `"terminal": {"sandbox": {"enabled": true}}`
	for _, misplaced := range []string{
		`"agent": {"sandbox": {"enabled": true}}`, `"enabled": true`,
		`"beta": {"terminal": {"sandbox": {"enabled": true}}}`,
	} {
		for _, text := range []string{
			`{` + right + `, ` + misplaced + `}`, `{"linux": {` + right + `}, ` + misplaced + `}`,
		} {
			if block, said := saidOf(t, text, Editor); block.FirstError != nil || !strings.Contains(said, "warning") {
				t.Errorf("%s: %s", text, said)
			}
		}
		if block, said := saidOf(t, `{`+misplaced+`}`, Editor); block.FirstError == nil {
			t.Errorf("control: %s: %s", misplaced, said)
		}
	}
}
