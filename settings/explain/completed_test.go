package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// What an organisation requires bounds what a session has for itself, too, in the
// policy, in explanations and in what a caller adds.
func TestCompleted_AnOrganisationBoundsIt(t *testing.T) {
	t.Parallel()
	const dir, program = "/home/u/.local/state/sandbox-sidecar/history", "/srv/sidecar"
	history := policy.Origin{File: policy.OriginSession, Key: "history"}
	complete := func(p policy.Policy, _ document.Kind) policy.Policy {
		const readExecute = policy.Read | policy.Execute
		p.Rules = slices.Concat(p.Rules, []policy.Rule{
			{Path: dir + "/p", Access: policy.Read | policy.Write, Origin: history},
			{Path: dir + "/start", Access: policy.Read, Origin: history},
			{Path: program, Access: readExecute, Origin: policy.Origin{File: policy.OriginBuiltIn, Key: "shell"}},
		})
		p.Replaced = []policy.Replaced{{Path: "/home/u/.local/share/fish", Source: dir + "/p/fish"}}
		p.Environment.Allowed = append(slices.Clone(p.Environment.Allowed), "VSCODE_INJECTION")
		return p
	}
	tree := resolvetest.InMemory(map[string]string{
		program: "", dir + "/p/fish/x": "", dir + "/start/x": "", "/home/u/project/x": "",
	})
	const all, none = "history replaced program variable", "program variable"
	for required, want := range map[string]string{
		`{}`:                                   all,
		`{"system_paths": {"read_write": []}}`: none,
		`{"additional_read_write_paths": []}`:  none,
		`{"additional_read_write_paths": ["~/.local/state"]}`:                  all,
		`{"additional_read_only_paths": ["` + dir + `/start"]}`:                "variable",
		`{"additional_executable_paths": []}`:                                  "history replaced variable",
		`{"additional_executable_paths": ["/srv"]}`:                            all,
		`{"allowed_env_vars": ["LANG"]}`:                                       "history replaced program",
		`{"allowed_env_vars": ["VSCODE_*"]}`:                                   all,
		`{"hidden_paths": ["~/.local"]}`:                                       none,
		`{"hidden_paths": ["` + dir + `/p/fish"]}`:                             none,
		`{"hidden_paths": ["~/.local/share/fish"]}`:                            "history program variable",
		`{"hidden_paths": ["~/.local/share"]}`:                                 "history program variable",
		`{"hidden_paths": ["/srv/sidecar"]}`:                                   "history replaced variable",
		`{"hidden_paths": ["` + dir + `"], "additional_executable_paths": []}`: "variable",
	} {
		s := managedSnapshot(t, tree, "{}", required, `{"enabled": true}`)
		s = compile.New(s.Input, nil, complete)
		has := func(p *policy.Policy) string {
			var list []string
			for _, one := range []struct {
				name string
				has  bool
			}{
				{"history", p.At(dir + "/p/x").Has(policy.Read | policy.Write)},
				{"replaced", len(p.Replaced) > 0},
				{"program", p.At(program).Has(policy.Read | policy.Execute)},
				{"variable", p.Environment.Allows("VSCODE_INJECTION")},
			} {
				if one.has {
					list = append(list, one.name)
				}
			}
			if some := p.At(dir+"/p/x") | p.At(dir+"/start/x"); some != 0 && list[0] != "history" {
				list = append(list, fmt.Sprintf("a part of the history (%s)", some))
			}
			return strings.Join(list, " ")
		}
		compiled := s.Compile(document.KindTerminal)
		if got := has(&compiled.Policy); got != want {
			t.Errorf("%s: has %q, want %q", required, got, want)
		}
		x, err := Why(s, document.KindTerminal, Write, dir+"/p/bash_history")
		if err != nil || x.Allowed != strings.Contains(want, "history") {
			t.Errorf("%s: explained %+v, %v", required, x, err)
		}
		added := managedSnapshot(t, tree, "{}", required, `{"enabled": true}`).Compile(document.KindTerminal)
		before := slices.Clone(added.Policy.Rules)
		added.Add(func(p policy.Policy) policy.Policy { return complete(p, document.KindTerminal) })
		if got := has(&added.Policy); got != want {
			t.Errorf("%s: added %q, want %q", required, got, want)
		}
		told := slices.ContainsFunc(added.Notes(), func(n compile.Note) bool {
			return strings.HasPrefix(n.Text, "sandboxed sessions lack the project's history: ")
		})
		if told == strings.Contains(want, "history") {
			t.Errorf("%s: told %t: %+v", required, told, added.Notes())
		}
		for _, rule := range before {
			if !slices.Contains(added.Policy.Rules, rule) {
				t.Errorf("%s: lost %+v", required, rule)
			}
		}
	}
}
