package compile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/source"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

// managedSnapshot has a file of the organisation's below the user's.
func managedSnapshot(t testing.TB, f resolve.FS, defaults, required, user, project string) *Snapshot {
	t.Helper()
	s := snapshotOf(t, f, user, project)
	s.Host.Account = s.Host.Home
	own := settingstest.Managed(t, managed.File, defaults, required)
	s.UserStates = slices.Concat([]source.State{own}, s.UserStates)
	return s
}

// beyond names something that a policy has and a requirement does not; "" if
// there is nothing. wide is what the requirement would be as the user's own
// settings. Of that only the keys count that it sets.
func beyondRequired(got, wide *policy.Policy, bound *settings) string {
	kinds := policy.Access(0)
	for _, c := range categories {
		if bound.sets(c.key) {
			switch c.access {
			case readExecute:
				kinds |= policy.Execute
			case policy.Read:
				kinds |= policy.Read
			default:
				kinds |= policy.Write
			}
		}
	}
	unprotected := *wide
	unprotected.Protected = nil
	for _, path := range concretePaths(got, wide) {
		_, hidden := got.HiddenAt(path)
		_, byDefault := wide.HiddenAt(path) // a grant of exactly such a path shows it
		if hidden || byDefault || policy.Contains(got.Project, path) {
			continue
		}
		if more := got.Outside(path) & kinds &^ unprotected.Outside(path); more != 0 {
			return more.String() + " on " + path
		}
	}
	if closed := bound.values.AllowNetwork; closed != nil && !*closed && got.Network.Allowed {
		return "the network"
	}
	if bound.sets("allow_network") && !*bound.values.AllowNetwork {
		if how := exceedsHosts(got.Network, wide.Network); how != "" && !bound.sets(toolchainsKey) {
			return how
		}
	}
	if bound.sets("allowed_env_vars") {
		for _, name := range variableNames(got, wide) {
			if got.Environment.Allows(name) && !wide.Environment.Allows(name) {
				return name
			}
		}
	}
	for _, socket := range got.UnixSockets {
		if bound.sets(socketsKey) && !slices.ContainsFunc(wide.UnixSockets, func(s policy.UnixSocket) bool {
			return s.Path == socket.Path && s.Abstract == socket.Abstract
		}) {
			return "the socket " + socket.Path + socket.Abstract
		}
	}
	if key := moreKeys(got, wide); bound.sets(keysKey) && key != "" {
		return key
	}
	for _, one := range wide.Protected {
		// It may lie in a grant that got does not have.
		entry := one.Origin.File == userFile && one.Origin.Key == protectedKey && got.At(one.Path).Has(policy.Write)
		if entry && !slices.ContainsFunc(got.Protected, func(p policy.Protected) bool { return p.Path == one.Path }) {
			return "a change of " + one.Path
		}
	}
	return ""
}

func checkRequired(t testing.TB, f resolve.FS, defaults, required, user, project string) {
	t.Helper()
	s := managedSnapshot(t, f, defaults, required, user, project)
	free := managedSnapshot(t, f, defaults, "{}", user, project)
	g := s.view()
	for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
		d := s.evaluation(kind).bounds.unclear
		if doubt := s.Compile(kind).Doubt; d != nil && (doubt == nil || !doubt.Refused) {
			t.Errorf("a %s starts although %s", kind, d)
		} else if d != nil {
			return
		}
	}
	for _, how := range []treatment{asIgnored, asTightening, asTrusted} {
		for _, kind := range []document.Kind{document.KindTerminal, document.KindTool} {
			got := s.run(g, s.ProjectDir, how, kind, nil).policyFor(kind)
			before := free.run(g, s.ProjectDir, how, kind, nil).policyFor(kind)
			before.OnDenied = got.OnDenied
			bound := boundsOf(s.UserStates, kind)
			own := snapshotOf(t, f, sharing(t, required), "")
			own.Host.Env = nil // as for the organisation's file
			alone := own.run(own.view(), s.ProjectDir, asIgnored, kind, nil)
			wide := alone.policyFor(kind)
			why := exceedsKind(&got, &before)
			if why == "" && before.Restricted == got.Restricted {
				why = exceedsGrants(&got, &before)
			}
			if why == "" {
				why = exceedsKind(&got, &policy.Policy{Restricted: wide.Restricted})
			}
			if why == "" && len(bound) > 0 {
				why = beyondRequired(&got, &wide, &bound[0])
			}
			if why != "" {
				t.Errorf("%s, %v: %s\ndefaults %s\nrequired %s\nuser     %s\nproject  %s", kind, how, why,
					defaults, required, user, project)
				return
			}
		}
	}
}

// sharing adds that temporary files are shared, if a block does not say.
func sharing(t testing.TB, block string) string {
	t.Helper()
	var keys map[string]any
	if err := json.Unmarshal([]byte(block), &keys); err != nil {
		t.Fatal(err)
	}
	if keys[temporaryKey] == nil {
		keys[temporaryKey] = "shared"
	}
	data, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRequired_NothingLoosensIt(t *testing.T) {
	t.Parallel()
	harness.Once(t, "its files are in memory")
	f := resolvetest.InMemory(settingstest.Tree)
	settingstest.ForPairs(t, pairs(t, 300), func(required, user string) {
		forPairsOnce(required+user, func(defaults, project string) {
			checkRequired(t, f, defaults, required, user, project)
		})
	})
}

// forPairsOnce calls check with blocks that depend on a text.
func forPairsOnce(text string, check func(defaults, project string)) {
	data := []byte(strings.Repeat(text, 3))
	slices.Reverse(data)
	check(settingstest.ByBytes(data[:len(data)/2]).Block(), settingstest.ByBytes(data[len(data)/2:]).Block())
}

func TestRequired_TakesAwayWhatTheUserOpens(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	const all = `{"mode": "off", "allow_network": true, "allowed_hosts": ["a.org"], "on_unavailable": "warn",
		"on_denied": "ask", "additional_read_write_paths": ["~/.ssh", "~/tools"], "allowed_env_vars": ["A", "B_*"],
		"protected_paths": ["!*"], "allowed_unix_sockets": ["abstract:a", "abstract:b"], "toolchains": ["go"]}`
	hosts := func(p *policy.Policy) bool { return !p.Network.Allowed && p.Network.ByHost() }
	restricted := func(p *policy.Policy) bool { return p.Restricted }
	hidden := func(p *policy.Policy) bool { return p.At("/home/u/.ssh") == 0 }
	reports := func(p *policy.Policy) bool { return p.OnDenied == policy.Report }
	ignores := func(p *policy.Policy) bool { return p.OnDenied == policy.Ignore }
	noGo := func(p *policy.Policy) bool { return !p.Environment.Allows("GOPATH") }
	for required, holds := range map[string]func(p *policy.Policy) bool{
		`{"enabled": true}`:              restricted,
		`{"tool": {"enabled": true}}`:    restricted,
		`{"mode": "strict"}`:             func(p *policy.Policy) bool { return p.Restricted && hidden(p) },
		`{"allow_network": false}`:       func(p *policy.Policy) bool { return !p.Network.Allowed && !hosts(p) },
		`{"allowed_hosts": ["b.org"]}`:   hosts,
		`{"denied_hosts": ["b.org"]}`:    hosts,
		`{"hidden_paths": ["~/.ssh"]}`:   hidden,
		`{"on_unavailable": "refuse"}`:   func(p *policy.Policy) bool { return p.OnUnavailable == policy.Refuse },
		`{"limits": {"processes": 7}}`:   func(p *policy.Policy) bool { return p.Limits.Processes == 7 },
		`{"limits": {"connections": 7}}`: func(p *policy.Policy) bool { return p.Limits.Connections == 7 },
		`{"protected_paths": ["x"]}`: func(p *policy.Policy) bool {
			_, is := p.ProtectedAt("/home/u/project/x")
			return is
		},
		`{"allowed_env_vars": ["B_C"]}`: func(p *policy.Policy) bool { return !p.Environment.Allows("A") },
		`{"signing_keys": []}`:          func(p *policy.Policy) bool { return len(p.SigningKeys) == 0 },
		`{"allowed_unix_sockets": []}`:  func(p *policy.Policy) bool { return len(p.UnixSockets) == 0 },
		`{"additional_read_write_paths": []}`: func(p *policy.Policy) bool {
			return !p.At("/home/u/tools").Has(policy.Write)
		},
		`{"toolchains": []}`:      noGo,
		`{"on_denied": "ignore"}`: ignores,
		`{"allow_network": true}`: reports,
	} {
		s := managedSnapshot(t, f, "{}", required, all, "")
		without := managedSnapshot(t, f, "{}", "{}", all, "").Compile(document.KindTool)
		if holds(&without.Policy) {
			t.Errorf("%s holds without the file, too", required)
		}
		if compiled := s.Compile(document.KindTool); !holds(&compiled.Policy) {
			data, _ := json.Marshal(compiled.Policy)
			t.Errorf("%s does not hold: %s", required, data)
		}
	}
}

// A key that is new must not be without effect here.
func TestRequired_KnowsEveryKey(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	user := `{"mode": "off", "allow_network": true, "on_unavailable": "warn", "temporary_files": "shared",
		"toolchain_caches": "shared", "toolchains": ["go"], "allowed_env_vars": ["A"],
		"allowed_unix_sockets": ["abstract:a"],
		"additional_read_write_paths": ["~/tools", "~/.ssh"], "additional_read_only_paths": ["~/.ssh"],
		"additional_executable_paths": ["~/bin"], "limits": {"processes": 4000, "memory": "90%", "cpu_weight": 900}}`
	values := map[string]string{
		"enabled": "true", "mode": `"strict"`, "apply_to": "-", "system_paths.executable": "[]",
		"system_paths.read_only":  "[]",
		"system_paths.read_write": "[]", "additional_executable_paths": "[]", "additional_read_only_paths": "[]",
		"additional_read_write_paths": "[]", "allow_network": "false", "allowed_hosts": "[]",
		"denied_hosts": `["b.org"]`,
		"localhost":    `"none"`, "parent_repository": "-", // see TestParent_NobodyOpensMoreThanTheUser
		"allowed_env_vars": "[]", "allowed_unix_sockets": "[]", "signing_keys": `["ask:*"]`,
		"credentials":     `{"TOKEN": {"hosts": []}}`,
		"protected_paths": `["x"]`, "hidden_paths": `["~/.ssh"]`,
		"temporary_files": `"private"`, "limits.processes": "7", "limits.memory": `"10%"`, "limits.cpu_weight": "3",
		"limits.connections": "3",
		"toolchains":         "[]", "toolchain_caches": `"private"`, "shell": "-", "on_unavailable": `"refuse"`,
		"on_denied": `"ignore"`, "process_tracking": "-",
		"audit": `"file"`, "audit_required": "true", "audit_argv": `"program"`,
	}
	for _, l := range document.Keys() {
		value, known := values[l.Name]
		if !known {
			t.Errorf("required.go has to say what %q bounds", l.Name)
			continue
		}
		if value == "-" {
			continue // it has no effect of its own, or none on Linux
		}
		block := fmt.Sprintf("{%q: %s}", l.Name, value)
		if group, name, nested := strings.Cut(l.Name, "."); nested {
			block = fmt.Sprintf("{%q: {%q: %s}}", group, name, value)
		}
		with := managedSnapshot(t, f, "{}", block, user, "").Compile(document.KindTool).Policy
		without := managedSnapshot(t, f, "{}", "{}", user, "").Compile(document.KindTool).Policy
		with.Restricted, without.Restricted = with.Restricted || l.Name != "enabled", l.Name != "enabled"
		if with.ID() == without.ID() && with.Audit == without.Audit {
			t.Errorf("%s changes nothing", block)
		}
		if l.Name != "enabled" && l.Name != "mode" {
			if how := exceedsGrants(&with, &without); how != "" && l.Name != "on_denied" {
				t.Errorf("%s: %s", block, how)
			}
			if with.Limits.Memory.Lower(without.Limits.Memory) != with.Limits.Memory {
				t.Errorf("%s: more memory", block)
			}
		}
	}
}

// What the command line says is over all other settings but these.
func TestRequired_HoldsForTheCommandLine(t *testing.T) {
	t.Parallel()
	s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", `{"enabled": true}`, "{}", "")
	command := settingstest.State(t, policy.OriginCommand, `{"mode": "off"}`)
	s.Command = &command
	if p := s.Compile(document.KindTool).Policy; !p.Restricted {
		t.Error("the command line turns the sandbox off")
	}
}

// The user's file does not have to say what is required.
func TestRequired_EnabledIsNotMissedInOtherFiles(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	for required, warns := range map[string]bool{`{"enabled": true}`: false, "{}": true} {
		warned := false
		for _, d := range managedSnapshot(t, f, `{"toolchains": ["go"]}`, required, "{}", "").Diagnostics() {
			warned = warned || strings.Contains(d.Message, "nothing is restricted")
		}
		if warned != warns {
			t.Errorf("with %s: warned %t", required, warned)
		}
	}
}

// Whoever is asked to trust a project reads what the trust would not open.
func TestRequired_AProjectAsksForNothingBeyondIt(t *testing.T) {
	t.Parallel()
	project := `{"additional_read_only_paths": ["~/.ssh"], "allowed_hosts": ["a.org"]}`
	texts := func(required string) (text string) {
		s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", required,
			`{"enabled": true, "allow_network": false}`, project)
		for _, a := range s.Project().Asks {
			text += a.Opens + "\n"
		}
		return text
	}
	bound := texts(`{"additional_read_only_paths": [], "allowed_hosts": []}`)
	if !strings.Contains(bound, "your organisation does not allow it") || strings.Contains(bound, "a.org") {
		t.Errorf("it asks: %s", bound)
	}
	if free := texts("{}"); strings.Contains(free, "organisation") || !strings.Contains(free, "a.org") {
		t.Errorf("without the file it asks: %s", free)
	}
}

// Variables that the user sets have no effect on the file's paths.
func TestRequired_UsesNoVariablesOfTheUser(t *testing.T) {
	t.Parallel()
	required := `{"additional_read_only_paths": ["~/tools", "$CACHE"], "system_paths": {"read_only": []}}`
	s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", required,
		`{"enabled": true, "additional_read_only_paths": ["/home/u/.ssh", "/home/u/tools", "/home/u/.cache"]}`, "")
	s.Host.Home, s.Host.Env["HOME"] = "/home/u/.ssh", "/home/u/.ssh"
	p := s.Compile(document.KindTool).Policy
	if !p.At("/home/u/tools").Has(policy.Read) || p.At("/home/u/.ssh/id").Has(policy.Read) ||
		p.At("/home/u/.cache").Has(policy.Read) {
		t.Errorf("rules %+v", p.Rules)
	}
}

// "enabled" alone restricts both kinds.
func TestRequired_EnabledDecidesAboutApplyTo(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		`{"enabled": true, "apply_to": "neither"}`: managed.File, `{"enabled": true, "apply_to": "tool"}`: managed.File,
		`{"apply_to": "both"}`: userFile,
	} {
		s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", `{"enabled": true}`, user, "")
		found := false
		for _, one := range s.Compile(document.KindTool).Switches {
			found = found || one.Key == "apply_to" && one.Value == `"both"` && one.Origin.File == want
		}
		if from := s.Origins()["apply_to"]; !found || from != want {
			t.Errorf("%s: from %s: %+v", user, from, s.Compile(document.KindTool).Switches)
		}
	}
}

// A mistake in what is required lets nothing start, not even a terminal.
func TestRequired_AMistakeRefusesEverything(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(settingstest.Tree)
	for _, required := range []string{
		`{"allow_networks": false}`, `{"enabled": "yes"}`, `{"hidden_paths": ["$UNSET/x"]}`,
		`{"denied_hosts": ["bad..name"]}`,
		`{"protected_paths": ["$UNSET"]}`, `{"hidden_paths": ["~"]}`, `{"terminal": {"sandbox": {}}}`,
	} {
		s := managedSnapshot(t, f, "{}", required, "{}", "")
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			if doubt := s.Compile(kind).Doubt; doubt == nil || !doubt.Refused || !doubt.Named {
				t.Errorf("%s: a %s starts", required, kind)
			}
		}
	}
}

// TestAuditArgv_WhoDecides: what the organisation requires counts before the
// user's value, in both directions, and a project has no say.
func TestAuditArgv_WhoDecides(t *testing.T) {
	t.Parallel()
	value := func(v string) string {
		if v == "" {
			return "{}"
		}
		return `{"audit": "file", "audit_argv": "` + v + `"}`
	}
	for _, row := range []struct {
		required, user, project string
		without                 bool
	}{
		{"", "", "", false},
		{"", "program", "", true},
		{"", "program", "redacted", true},
		{"", "redacted", "program", false},
		{"", "", "program", false},
		{"redacted", "", "program", false},
		{"redacted", "program", "", false},
		{"redacted", "program", "program", false},
		{"program", "redacted", "redacted", true},
		{"program", "", "", true},
	} {
		s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", value(row.required), value(row.user),
			value(row.project))
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			if got := s.Compile(kind).Policy.Audit.ProgramOnly; got != row.without {
				t.Errorf("%+v: without arguments: %t", row, got)
			}
		}
		for _, ask := range s.Project().Asks {
			t.Errorf("%+v: the project asks: %+v", row, ask)
		}
	}
}
