package document

import (
	"slices"
	"strings"
	"testing"
)

func TestDecode_MisplacedSettingsNameTheRightPlace(t *testing.T) {
	t.Parallel()
	const place = `settings belong in {"terminal": {"sandbox": {…}}}`
	const block = `{"enabled": true}`
	for _, test := range []struct {
		text string
		// own and foreign are the diagnostics on a file of ours and on Zed's. "" is
		// none; "!" begins an error.
		own, foreign string
	}{
		{`{"terminal": {"sandbox": ` + block + `}}`, "", ""},
		{
			`{"enabled": true}`, `!1:2: error: "enabled" is in the wrong place; ` + place,
			`!1:2: error: "enabled" has no effect; ` + place,
		},
		{
			`{"allow_network": false}`, `!1:2: error: "allow_network" is in the wrong place`,
			`!1:2: error: "allow_network" is in the wrong place`,
		},
		{`{"enabeld": true}`, `!1:2: error: "enabeld": unknown setting; ` + place, ""},
		{
			`{"sandbox": ` + block + `}`, `!1:2: error: "sandbox" is in the wrong place; ` + place,
			`!1:2: error: "sandbox" is in the wrong place`,
		},
		{`{"sandbox": true}`, `!1:2: error: "sandbox" is in the wrong place`, ""},
		{`{"sandbox": {"image": "x"}}`, `!1:2: error: "sandbox" is in the wrong place`, ""},
		{
			`{"terminal.sandbox": ` + block + `}`, `!1:2: error: "terminal.sandbox" is one name with dots; ` + place,
			`!1:2: error: "terminal.sandbox" is one name`,
		},
		{
			`{"terminal.sandbox.enabled": true}`, `!1:2: error: "terminal.sandbox.enabled" is one name`,
			`!1:2: error: "terminal.sandbox.enabled" is one name`,
		},
		{
			`{"linux.terminal.sandbox": ` + block + `}`, `!1:2: error: "linux.terminal.sandbox" is one`,
			`!1:2: error: "linux.terminal.sandbox" is one`,
		},
		{
			`{"sandbox.enabled": true}`, `!1:2: error: "sandbox.enabled" is one name`,
			`!1:2: error: "sandbox.enabled" is one name`,
		},
		{
			`{"terminal": {"sandbx": ` + block + `}}`,
			`!1:15: error: "terminal.sandbx": unknown setting, did you mean "sandbox"?`,
			`!1:15: error: "terminal.sandbx"`,
		},
		{`{"terminal": {"sandbx": {"a": 1}}}`, `!1:15: error: "terminal.sandbx"`, ""},
		{
			`{"terminal": {"enabled": true}}`, `!1:15: error: "terminal.enabled" is in the wrong place`,
			`!1:15: error: "terminal.enabled" has no effect; ` + place,
		},
		{
			`{"terminal": {"apply_to": "tool"}}`, `!1:15: error: "terminal.apply_to" is in the wrong place`,
			`!1:15: error: "terminal.apply_to" is`,
		},
		{
			`{"terminl": {"sandbox": ` + block + `}}`,
			`!1:2: error: "terminl": unknown setting, did you mean "terminal"?`, `!1:2: error: "terminl"`,
		},
		{`{"terminals": {"font_size": 1}}`, `!1:2: error: "terminals": unknown setting, did you mean "terminal"?`, ""},
		{
			`{"TERMINAL": {"sandbox": ` + block + `}}`,
			`!1:2: error: "TERMINAL": unknown setting, did you mean "terminal"?`, `!1:2: error: "TERMINAL"`,
		},
		{
			`{"linux": {"sandbox": ` + block + `}}`, `!1:12: error: "linux.sandbox" is in the wrong place`,
			`!1:12: error: "linux.sandbox" is`,
		},
		{
			`{"linux": {"terminal": {"sandbx": ` + block + `}}}`, `!1:25: error: "linux.terminal.sandbx": unknown`,
			`!1:25: error: "linux.terminal.sandbx": unknown`,
		},
		{
			`{"linx": {"terminal": {"sandbox": ` + block + `}}}`,
			`!1:2: error: "linx": unknown setting, did you mean "linux"?`, `!1:2: error: "linx": unknown`,
		},
		// A mistake in another platform's block stops nothing here.
		{
			`{"macos": {"sandbox": ` + block + `}}`, `1:12: error: "macos.sandbox" is in the wrong place`,
			`1:12: error: "macos.sandbox" is`,
		},
		{
			`{"darwin": {"terminal": {"sandbox": ` + block + `}}}`,
			`!1:2: error: "darwin": unknown setting, did you mean "macos"?`, `1:2: warning: "darwin": unknown`,
		},
		{`{"darwin": 1}`, `!1:2: error: "darwin": unknown`, ""},
		// Every unknown key of a file of ours stops tools.
		{`{"my-tools": {"deep": {"enabled": true}}}`, `!1:2: error: "my-tools": unknown setting; ` + place, ""},
		{`{"sidecar": {"enabled": true}}`, `!1:2: error: "sidecar": unknown setting; ` + place, ""},
		{`{"policy": {}}`, `!1:2: error: "policy": unknown setting; ` + place, ""},
		{`{"permissions": null}`, `!1:2: error: "permissions": unknown setting; ` + place, ""},
		{`{"sandboxSidecar.enabled": true}`, `!1:2: error: "sandboxSidecar.enabled": unknown setting; ` + place, ""},
		{`{"": 1}`, `!1:2: error: "": unknown setting; ` + place, ""},
		{`{"linux": {"policy": 1}}`, `!1:12: error: "linux.policy": unknown setting; ` + place, ""},
		{`{"macos": {"policy": 1}}`, `1:12: error: "macos.policy": unknown setting; ` + place, ""},
		{`{"windows": []}`, `!1:13: error: windows: expected an object, found an array`, ""},
		{`{"linux": {}, "linux": {}}`, `!1:15: error: linux is written twice`, `1:15: warning: linux is written twice`},
		{
			`{"linux": {"terminal": {"sandbox": ` + block + `}}, "linux": {}}`, `!1:57: error: linux is written twice`,
			`!1:57: error: linux is written twice`,
		},
		{`{"my-tools": {"sandbox": {"enabled": true}}}`, `!1:2: error: "my-tools": unknown setting; ` + place, ""},
		{`{"my-tools": {"deep": {"apply_to": "tool"}}}`, `!1:2: error: "my-tools": unknown setting; ` + place, ""},
		{
			`{"Terminal": {"Sandbox": ` + block + `}}`,
			`!1:2: error: "Terminal": unknown setting, did you mean "terminal"?`, `!1:2: error: "Terminal"`,
		},
		{
			`{"terminal": {"sandbx": {"enable": true}}}`, `!1:15: error: "terminal.sandbx"`,
			`!1:15: error: "terminal.sandbx"`,
		},
		{
			`{"sandbox": {"enable": true}}`, `!1:2: error: "sandbox" is in the wrong place`,
			`!1:2: error: "sandbox" is in the wrong place`,
		},
		{
			`{"terminal": {"linux": {"sandbox": ` + block + `}}}`, `!1:15: error: "terminal.linux"`,
			`!1:15: error: "terminal.linux" is in the wrong place`,
		},
		{
			`{"terminal": {"sandbox": {"enable": true}}, "terminal": {"shell": "x"}}`,
			`!error: terminal is written twice`, `!error: terminal is written twice`,
		},
		{`{"terminal": {"sandbox": {"$schema": "x", "enabled": true}}}`, "", ""},
		{`{"theme": "One"}`, `!1:2: error: "theme": unknown setting; ` + place, ""},
		{`{"terminal": {"font_size": 12}}`, `!1:15: error: "terminal.font_size": unknown setting; ` + place, ""},
		{`{"$schema": "settings.schema.json"}`, "", ""},
		{
			`{"terminal": {"sandbox": ` + block + `}, "terminal": {}}`, `!1:46: error: terminal is written twice`,
			`!1:46: error: terminal is written twice`,
		},
		{
			`{"terminal": {"a": 1}, "terminal": {"sandbox": ` + block + `}}`, `!1:15: error: "terminal.a"`,
			`1:24: warning: terminal is written twice`,
		},
		{`{"\u001b]8;;x\u0007enabled": 1}`, `!1:2: error: "\x1b]8;;x\x07enabled": unknown`, ""},
	} {
		for whose, want := range map[Owner]string{Sidecar: test.own, Editor: test.foreign} {
			block, problem := Decode([]byte(test.text), "linux", whose)
			if problem != nil {
				t.Errorf("%s: %v", test.text, problem)
				continue
			}
			var said []string
			for _, p := range block.Problems {
				said = append(said, p.String())
			}
			want, fatal := strings.CutPrefix(want, "!")
			got := strings.Join(said, "\n")
			if want == "" && got != "" || !strings.Contains(got, want) || (block.FirstError != nil) != fatal {
				t.Errorf("%s, audience %d: said %q, stops tools: %t\nwant %q, %t", test.text, whose, got,
					block.FirstError != nil, want, fatal)
			}
		}
	}
}

// Zed's own keys must never count as misspelt ones of ours: its users would be
// left without tools.
func TestDecode_ZedsOwnSettingsRaiseNothing(t *testing.T) {
	t.Parallel()
	const text = `{
  "agent": {
    "enabled": true, "profiles": {"write": {"name": "Write", "tools": {"terminal": true}}},
    "sandbox_permissions": {"network": true, "allow_hosts": ["example.org"], "write_paths": ["/x"]},
    "tool_permissions": {"tools": {"terminal": {"default": "confirm"}}}
  },
  "terminal": {
    "shell": {"with_arguments": {"program": "/bin/zsh", "args": ["-l"]}}, "dock": "bottom", "default_width": 640, "default_height": 320,
    "working_directory": "current_project_directory", "blinking": "terminal_controlled", "cursor_shape": null, "alternate_scroll": "on",
    "option_as_meta": false, "copy_on_select": false, "keep_selection_on_copy": true, "button": true, "env": {"enabled": "1", "sandbox": "x"},
    "line_height": "comfortable", "minimum_contrast": 45, "detect_venv": {"on": {"directories": [".venv"], "activate_script": "default"}},
    "toolbar": {"breadcrumbs": true}, "scrollbar": {"show": null}, "font_size": 15, "font_family": "x", "font_features": {"calt": false},
    "font_weight": 400, "max_scroll_history_lines": 10000, "path_hyperlink_regexes": [], "path_hyperlink_timeout_ms": 1, "scroll_multiplier": 1
  },
  "linux": {"terminal": {"font_size": 12}, "theme": "x"}, "macos": {"buffer_font_size": 1}, "windows": {}, "profiles": {"x": {"base": "user", "settings": {"agent": {"enabled": true}, "terminal": {"font_size": 1}}}},
  "languages": {"Go": {"enabled": true}}, "lsp": {"enabled": {}}, "indent_guides": {"enabled": true}, "terminal_panel": {"enabled": true},
  "journal": {}, "ssh_connections": [], "git": {"enabled": true}, "preview": {"terminal": {"font_size": 1}}, "stable": {}, "nightly": {}, "dev": {},
  "node": {"path": "x"}, "context_servers": {"sandbox": {"command": "x", "enabled": true}}, "toolchains": []
}`
	block, problem := Decode([]byte(text), "linux", Editor)
	// Its variables alone have a note.
	isNote := func(d Diagnostic) bool { return strings.HasPrefix(d.Message, "terminal.env has no effect") }
	if problem != nil || len(block.Problems) != 1 || !slices.ContainsFunc(block.Problems, isNote) {
		t.Errorf("%v %v", problem, block.Problems)
	}
}
