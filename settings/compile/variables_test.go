package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
)

// withDefaultVariables are the built-in names and more.
func withDefaultVariables(names ...string) []string {
	list := slices.Concat(document.DefaultEnvVars, names)
	slices.Sort(list)
	return list
}

func TestVariables_AListWithPlusAdds(t *testing.T) {
	t.Parallel()
	const on = `{"enabled": true, `
	for _, test := range []struct {
		name, zed, own, project string
		tool, terminal          []string // nil: as the tool's
	}{
		{"nothing", `{"enabled": true}`, `{}`, "", withDefaultVariables(), nil},
		{
			"to the built-in list", on + `"allowed_env_vars": ["+A", "+B_*"]}`, `{}`, "",
			withDefaultVariables("A", "B_*"), nil,
		},
		{"to a list", on + `"allowed_env_vars": ["A"]}`, `{"allowed_env_vars": ["+B"]}`, "", []string{"A", "B"}, nil},
		{"to an empty list", on + `"allowed_env_vars": []}`, `{"allowed_env_vars": ["+B"]}`, "", []string{"B"}, nil},
		{
			"twice", on + `"allowed_env_vars": ["+A", "+A"]}`, `{"allowed_env_vars": ["+A", "+B"]}`, "",
			withDefaultVariables("A", "B"), nil,
		},
		{"what is there", on + `"allowed_env_vars": ["+PATH"]}`, `{}`, "", withDefaultVariables(), nil},
		{
			"a later list replaces", on + `"allowed_env_vars": ["+A"]}`, `{"allowed_env_vars": ["B"]}`, "",
			[]string{"B"},
			nil,
		},
		{"an empty list replaces", on + `"allowed_env_vars": ["+A"]}`, `{"allowed_env_vars": []}`, "", nil, nil},
		{"null inherits", on + `"allowed_env_vars": ["A"]}`, `{"allowed_env_vars": null}`, "", []string{"A"}, nil},
		{
			"for one kind", on + `"allowed_env_vars": ["A"], "tool": {"allowed_env_vars": ["+B"]}}`, `{}`, "",
			[]string{"A", "B"},
			[]string{"A"},
		},
		{"mixed replaces", on + `"allowed_env_vars": ["+A", "B"]}`, `{}`, "", []string{"A", "B"}, nil},
		{"no name", on + `"allowed_env_vars": ["+", "++A", "+A B", "+*"]}`, `{}`, "", withDefaultVariables(), nil},
		{
			"a project's adds nothing", on + `"allowed_env_vars": ["A"]}`, `{}`, `{"allowed_env_vars": ["+B"]}`,
			[]string{"A"},
			nil,
		},
		{
			"a project's takes nothing away", `{"enabled": true}`, `{}`, `{"allowed_env_vars": ["+B"]}`,
			withDefaultVariables(), nil,
		},
		{
			"a project's list restricts", on + `"allowed_env_vars": ["+A", "+B"]}`, `{}`,
			`{"allowed_env_vars": ["B", "C"]}`,
			[]string{"B", "COLORTERM", "TERM", "TERM_PROGRAM"},
			nil,
		},
		{
			"a project's kind", on + `"allowed_env_vars": ["A", "B"]}`, `{}`,
			`{"allowed_env_vars": ["A"], "tool": {"allowed_env_vars": ["+B", "+C"]}}`,
			[]string{"A", "B"},
			[]string{"A"},
		},
	} {
		s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}), test.zed, test.project)
		s.UserStates = append(s.UserStates, settingstest.State(t, "/home/u/own.json", test.own))
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			want := test.tool
			if kind == document.KindTerminal && test.terminal != nil {
				want = test.terminal
			}
			compiled := s.Compile(kind)
			if got := compiled.Policy.Environment.Allowed; !slices.Equal(got, want) {
				t.Errorf("%s, %s: %q, want %q", test.name, kind, got, want)
			}
			merged := s.MergedFor(kind)
			got := slices.Sorted(slices.Values(merged.AllowedEnvVars))
			if test.name != "no name" && !slices.Equal(got, want) {
				t.Errorf("%s, %s: the merged settings have %q, want %q", test.name, kind, got, want)
			}
		}
	}
}

// Each variable has the line that brings it, whatever file that is in.
func TestVariables_EachHasItsOwnLine(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}),
		"{\"enabled\": true,\n\"allowed_env_vars\": [\"+A\"]}", "")
	own := settingstest.State(t, "/home/u/own.json", "{\n\n\"tool\": {\"allowed_env_vars\": [\"+B\",\n\"+-\"]}}")
	s.UserStates = append(s.UserStates, own)
	compiled := s.Compile(document.KindTool)
	want := map[string]string{
		"A": "allowed_env_vars (" + userFile + ":2)", "B": "tool.allowed_env_vars (/home/u/own.json:3)",
		"PATH": "allowed_env_vars (" + policy.OriginBuiltIn + ")",
	}
	for _, v := range compiled.Variables {
		if line, checked := want[v.Pattern]; checked && v.Origin.String() != line {
			t.Errorf("%s comes from %s, want %s", v.Pattern, v.Origin, line)
		}
		delete(want, v.Pattern)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if got := said(compiled, "/home/u/own.json"); !strings.Contains(got, "4:1: error: tool.allowed_env_vars: \"-\"") {
		t.Errorf("the wrong name: %q", got)
	}
}

func TestVariables_ATrustedProjectAdds(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}),
		`{"enabled": true, "allowed_env_vars": ["A"]}`, `{"allowed_env_vars": ["+A", "+SECRET"]}`)
	e := s.evaluation(document.KindTool)
	if len(e.asks) != 1 || e.asks[0].Value != "SECRET" {
		t.Errorf("it asks for %+v, want SECRET alone", e.asks)
	}
	trusted := s.run(s.view(), s.ProjectDir, asTrusted, document.KindTool, nil)
	if got := trusted.policy.Environment.Allowed; !slices.Equal(got, []string{"A", "SECRET"}) {
		t.Errorf("trusted, it gets %q", got)
	}
}

// What an organisation requires bounds. A list that adds cannot, and nothing
// starts.
func TestVariables_WhatIsRequiredAddsNothing(t *testing.T) {
	t.Parallel()
	for text, stops := range map[string]bool{
		`{"required": {"allowed_env_vars": ["A"]}}`:                      false,
		`{"required": {"allowed_env_vars": ["+A"]}}`:                     true,
		`{"required": {"tool": {"allowed_env_vars": ["+A"]}}}`:           true,
		`{"linux": {"required": {"allowed_env_vars": ["+A"]}}}`:          true,
		`{"defaults": {"allowed_env_vars": ["+A"]}}`:                     false,
		`{"required": {"allowed_env_vars": []}}`:                         false,
		`{"required": {"allowed_env_vars": null}, "defaults": null}`:     false,
		`{"required": {"allowed_env_vars": ["+A"], "tool": null}}`:       true,
		`{"macos": {"required": {"allowed_env_vars": ["+A"]}}}`:          false, // only reported
		`{"required": {"allowed_env_vars": ["+A", "B"]}, "linux": {}}`:   true,
		`{"linux": {"required": {"allowed_env_vars": ["B", "+A"]}}}`:     true,
		`{"required": {"allowed_env_vars": {"+A": "x"}}, "linux": null}`: true,
	} {
		found, problem := document.DecodeManaged([]byte(text), "linux")
		if problem != nil {
			t.Fatalf("%s: %v", text, problem)
		}
		if got := found.Required.FirstError != nil; got != stops {
			t.Errorf("%s: stops %t, want %t: %v", text, got, stops, found.Required.Problems)
		}
		if first := found.Required.FirstError; first != nil && (first.Line != 1 || first.Key == "" ||
			!strings.Contains(text[:first.Column], "allowed_env_vars")) {
			t.Errorf("%s: %+v", text, first)
		}
		state := source.State{File: "/etc/x", Managed: true, Good: found.Defaults, Bound: found.Required}
		for _, bound := range boundsOf([]source.State{state}, document.KindTool) {
			if strings.Contains(strings.Join(bound.values.AllowedEnvVars, " "), "+") || bound.sets(variablesKey) &&
				slices.Contains(bound.values.AllowedEnvVars, "PATH") {
				t.Errorf("%s: bounds by %q", text, bound.values.AllowedEnvVars)
			}
		}
	}
}

// The hint for a variable names a step that works: the list of the kind or a plain
// list decides, and the organisation or the project may.
func TestVariables_TheStepForOneWorks(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(settingstest.Tree)
	const plain = `add "X" to "allowed_env_vars"`
	for _, test := range []struct{ required, user, project, step, followed string }{
		{"{}", `{}`, "", `add "+X" to "allowed_env_vars"`, `{"allowed_env_vars": ["+X"]}`},
		{
			"{}", `{"allowed_env_vars": ["+A"]}`, "", `add "+X" to "allowed_env_vars"`,
			`{"allowed_env_vars": ["+A", "+X"]}`,
		},
		{"{}", `{"allowed_env_vars": ["A"]}`, "", plain, `{"allowed_env_vars": ["A", "X"]}`},
		{
			"{}", `{"allowed_env_vars": ["+B"], "tool": {"allowed_env_vars": ["A"]}}`, "", plain + ` of "tool"`,
			`{"allowed_env_vars": ["+B"], "tool": {"allowed_env_vars": ["A", "X"]}}`,
		},
		{
			"{}", `{"tool": {"allowed_env_vars": ["+A"]}}`, "", `add "+X" to "allowed_env_vars" of "tool"`,
			`{"tool": {"allowed_env_vars": ["+A", "+X"]}}`,
		},
		{`{"allowed_env_vars": ["A"]}`, `{}`, "", "your organisation's settings do not let sessions have it", ""},
		{`{"allowed_env_vars": ["X"]}`, `{}`, "", `add "+X" to "allowed_env_vars"`, `{"allowed_env_vars": ["+X"]}`},
		{"{}", `{}`, `{"allowed_env_vars": ["A"]}`, `the project's file "` + projectFile + `" does not list it`, ""},
	} {
		c := managedSnapshot(t, tree, "{}", test.required, test.user, test.project).Compile(document.KindTool)
		if got := c.PassVariable("X"); got != test.step || c.Policy.Environment.Allows("X") {
			t.Errorf("%s, %s: %s, want %s", test.required, test.user, got, test.step)
		}
		if test.followed == "" {
			continue
		}
		c = managedSnapshot(t, tree, "{}", test.required, test.followed, test.project).Compile(document.KindTool)
		if !c.Policy.Environment.Allows("X") {
			t.Errorf("%s: following the step does not pass it", test.followed)
		}
	}
}

func TestVariables_BlocksOfOneFileAdd(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"terminal": {"sandbox": {"allowed_env_vars": ["A"]}}, "linux": {"terminal": {"sandbox": {"allowed_env_vars": ["+B"]}}}`:  "A B",
		`"terminal": {"sandbox": {"allowed_env_vars": ["+A"]}}, "linux": {"terminal": {"sandbox": {"allowed_env_vars": ["+B"]}}}`: "+A +B",
		`"terminal": {"sandbox": {"allowed_env_vars": ["+A"]}}, "linux": {"terminal": {"sandbox": {"allowed_env_vars": ["B"]}}}`:  "B",
		`"linux": {"terminal": {"sandbox": {"allowed_env_vars": ["+B"]}}}`:                                                        "+B",
	} {
		block, problem := document.Decode([]byte("{"+text+"}"), "linux", document.Sidecar)
		if problem != nil {
			t.Fatal(problem)
		}
		if got := strings.Join(block.Values.AllowedEnvVars, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if at := block.Spans[variablesKey].Elements; len(at) != len(block.Values.AllowedEnvVars) {
			t.Errorf("%s: %d positions", text, len(at))
		}
	}
}

// The variables that describe a terminal need no entry, whatever the lists say.
func TestVariables_OfTheTerminalAlwaysPass(t *testing.T) {
	t.Parallel()
	s := snapshotOf(t, resolvetest.Tree(t, map[string]string{"/home/u/project/": ""}),
		`{"enabled": true, "allowed_env_vars": []}`, `{"allowed_env_vars": []}`)
	compiled := s.Compile(document.KindTerminal)
	passed, dropped := compiled.Policy.Environment.Filter([]string{
		"TERM=a", "COLORTERM=b", "TERM_PROGRAM=c", "TERM_PROGRAM_VERSION=d", "ZED_TERM=true", "ZED_OTHER=x",
		"PATH=/bin",
	})
	if len(passed) != 5 || !slices.Contains(passed, "ZED_TERM=true") ||
		!slices.Equal(dropped, []string{"PATH", "ZED_OTHER"}) {
		t.Errorf("passed %q, dropped %q", passed, dropped)
	}
}

// Where packages come from passes without passwords, unless somebody has listed
// the variable by hand.
func TestVariables_OfRegistries(t *testing.T) {
	t.Parallel()
	const on = `{"enabled": true, `
	for name, test := range map[string]struct {
		user, project string
		trusted       bool
		passes, bare  bool
	}{
		"by default":    {on + `"enabled": true}`, "", false, true, true},
		"beside others": {on + `"allowed_env_vars": ["+A"]}`, "", false, true, true},
		"listed":        {on + `"allowed_env_vars": ["PIP_INDEX_URL"]}`, "", false, true, false},
		"added":         {on + `"allowed_env_vars": ["+PIP_INDEX_URL"]}`, "", false, true, false},
		"added by a trusted project": {
			on + `"enabled": true}`, `{"allowed_env_vars": ["+PIP_INDEX_URL"]}`, true, true, true,
		},
		"by a prefix": {on + `"allowed_env_vars": ["+PIP_*"]}`, "", false, true, false},
		"replaced":    {on + `"allowed_env_vars": ["PATH"]}`, "", false, false, false},
		"listed by a project": {
			on + `"enabled": true}`, `{"allowed_env_vars": ["PIP_INDEX_URL"]}`, false, true, true,
		},
		"a prefix of a trusted project": {
			on + `"enabled": true}`, `{"allowed_env_vars": ["PATH", "PIP_*"]}`, true, true, true,
		},
		"a prefix that a trusted project adds": {
			on + `"allowed_env_vars": ["PATH"]}`, `{"allowed_env_vars": ["+PIP_*"]}`, true, true, true,
		},
		"listed by a trusted project": {
			on + `"enabled": true}`, `{"allowed_env_vars": ["PIP_INDEX_URL"]}`, true, true, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
			s := snapshotOf(t, tree, test.user, test.project)
			e := s.Compile(document.KindTool).Policy.Environment
			if test.trusted {
				e = s.run(s.view(), s.ProjectDir, asTrusted, document.KindTool, nil).policy.Environment
			}
			if got := e.Allows("PIP_INDEX_URL"); got != test.passes {
				t.Errorf("it passes: %t", got)
			}
			if got := slices.Contains(e.Bare, "PIP_INDEX_URL"); got != test.bare {
				t.Errorf("it loses its password: %t", got)
			}
		})
	}
}
