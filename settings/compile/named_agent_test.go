package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/agents"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/toolchain"
)

// forAgent is a snapshot for the agent claude of the command line. Its program is
// in the user's own directory.
func forAgent(s *Snapshot) *Snapshot {
	agent, _ := toolchain.FindAgent("claude")
	with := s.Input
	with.Agent = &Agent{
		Toolchain: agent.Toolchain, Hosts: []toolchain.Registry{{Host: "localhost:8080", Why: "a model"}},
		Programs: []agents.Part{{Path: "/home/u/npm/bin/claude", Beside: []string{"/home/u/npm/node_modules"}}},
	}
	with.Agent.Variables = slices.Concat(with.Agent.Variables, agent.Passed)
	return New(with, nil, nil)
}

// agentTree is settingstest's, with an agent and its state.
func agentTree() map[string]string {
	tree := map[string]string{
		"/home/u/.claude/.credentials.json":       "",
		"/home/u/.claude.json":                    "",
		"/home/u/npm/bin/claude":                  "-> ../node_modules/claude/cli",
		"/home/u/npm/node_modules/claude/cli":     "",
		"/home/u/npm/node_modules/claude/private": "",
		"/home/u/.codex/auth.json":                "none",
	}
	for path, what := range settingstest.Tree {
		tree[path] = what
	}
	return tree
}

// An agent of the command line opens its set and its program, and nothing else,
// under settings by chance. What they grant without it stays.
func TestNamedAgent_OpensExactlyItsSet(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(agentTree())
	own := []string{
		"/home/u/.claude", "/home/u/.claude.json", "/home/u/npm/node_modules", "/home/u/npm/node_modules/claude/cli",
		"/home/u/.local/bin/claude", "/home/u/.local/share/claude",
	}
	set, _ := toolchain.FindAgent("claude")
	count := 100
	if testing.Short() {
		count = 30
	}
	counted := make(chan bool, 4*count+64)
	settingstest.ForPairs(t, count, func(user, project string) {
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			plain := snapshotOf(t, f, user, project)
			without, with := plain.Compile(kind), forAgent(plain).Compile(kind)
			counted <- with.AgentGap == ""
			a, b := policy.NewIndex(&without.Policy), policy.NewIndex(&with.Policy)
			for _, path := range concretePaths(&without.Policy, &with.Policy) {
				before, now := a.Outside(path), b.Outside(path)
				isOwn := slices.ContainsFunc(own, func(dir string) bool { return policy.Contains(dir, path) })
				if now&^before != 0 && (!isOwn || with.AgentGap != "") {
					t.Errorf("%s: it opens %s to %s", user, path, now&^before)
				}
				if before&^now != 0 && !isOwn {
					t.Errorf("%s: it takes %s of %s away", user, before&^now, path)
				}
			}
			names := append(variableNames(&without.Policy, &with.Policy), "OPENAI_API_KEY")
			for _, name := range names {
				isOwn := slices.ContainsFunc(slices.Concat(set.Variables, set.Passed),
					func(v toolchain.Variable) bool { return v.Name == name })
				if with.Policy.Environment.Allows(name) && !without.Policy.Environment.Allows(name) && !isOwn {
					t.Errorf("%s: it passes %s", user, name)
				}
			}
			for _, h := range with.Policy.Network.AllowedHosts {
				ofSet := h.Pattern == "localhost:8080" || slices.ContainsFunc(set.Registries(),
					func(r toolchain.Registry) bool { return r.Host == h.Pattern })
				if h.Origin.Entry == "claude" && !ofSet {
					t.Errorf("%s: it opens the host %s", user, h.Pattern)
				}
			}
			if with.Policy.Network.Allowed != without.Policy.Network.Allowed {
				t.Errorf("%s: it changes allow_network", user)
			}
		}
	})
	close(counted)
	yes, no := 0, 0
	for counts := range counted {
		if counts {
			yes++
		} else {
			no++
		}
	}
	if yes == 0 || no == 0 {
		t.Errorf("control: it counts under %d policies, and does not under %d", yes, no)
	}
}

// The set counts beside empty lists, and is known by its name.
func TestNamedAgent_CountsBesideTheSettings(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(agentTree())
	for _, user := range []string{
		`{}`, `{"enabled": true}`, `{"mode": "strict"}`,
		`{"enabled": true, "toolchains": ["claude"], "allow_network": false}`,
		`{"enabled": true, "toolchains": [], "allowed_hosts": [], "allow_network": false}`,
	} {
		command := settingstest.State(t, policy.OriginCommand,
			`{"enabled": true, "apply_to": "both", "allow_network": false}`)
		s := snapshotOf(t, f, user, "")
		s.Command = &command
		c := forAgent(s).Compile(document.KindTool)
		if c.AgentGap != "" || !c.Policy.Restricted {
			t.Errorf("%s: %q", user, c.AgentGap)
		}
		for path, want := range map[string]string{
			"/home/u/.claude/.credentials.json":   "read,write,execute",
			"/home/u/npm/node_modules/claude/cli": "read,execute",
			"/home/u/.codex/auth.json":            "none", "/home/u/.ssh/id": "none",
		} {
			if got := accessOf(c, path); got != want {
				t.Errorf("%s: %s: %q, want %q", user, path, got, want)
			}
		}
		reached := ""
		for _, h := range c.Policy.Network.AllowedHosts {
			reached += h.Pattern + " "
		}
		if !strings.Contains(reached, "api.anthropic.com:443 ") || !strings.Contains(reached, "localhost:8080 ") {
			t.Errorf("%s: it reaches %q", user, reached)
		}
		if !c.Policy.Environment.Allows("ANTHROPIC_API_KEY") || c.Policy.Environment.Allows("OPENAI_API_KEY") {
			t.Errorf("%s: variables %q", user, c.Policy.Environment.Allowed)
		}
		// The setting of that name opens the state, but passes no key.
		s.Agent = nil
		if s.Compile(document.KindTool).Policy.Environment.Allows("ANTHROPIC_API_KEY") {
			t.Errorf("%s: other sessions get the key", user)
		}
	}
}

// Whoever may take a set away takes that of the command line away, too, and its
// name is said.
func TestNamedAgent_CanBeForbidden(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(agentTree())
	for name, s := range map[string]*Snapshot{
		"the project's file":       snapshotOf(t, f, `{"enabled": true}`, `{"toolchains": ["go"]}`),
		"your organisation's file": managedSnapshot(t, f, "{}", `{"toolchains": ["codex"]}`, `{"enabled": true}`, ""),
	} {
		c := forAgent(s).Compile(document.KindTool)
		if !strings.Contains(c.AgentGap, name) || accessOf(c, "/home/u/.claude/x") != "none" ||
			accessOf(c, "/home/u/npm/node_modules/claude/cli") != "none" ||
			c.Policy.Environment.Allows("ANTHROPIC_API_KEY") {
			t.Errorf("%s: %q", name, c.AgentGap)
		}
	}
}

// A link that a session could have made, or a place of keys, is not granted as a
// program.
func TestNamedAgent_ProgramsAreNoWayOut(t *testing.T) {
	t.Parallel()
	f := resolvetest.InMemory(map[string]string{
		"/home/u/project/bin/claude": "-> /home/u/secret/tool", "/home/u/secret/tool": "", "/home/u/.ssh/id": "",
		"/home/u/bin/claude": "-> ../.ssh/id", "/home/u/bin/good": "-> ../tools/good", "/home/u/tools/good": "",
		"/home/u/cache/by": "", "/home/u/secret/modules/x": "",
	})
	s := snapshotOf(t, f, `{"enabled": true, "additional_read_write_paths": ["~/cache"]}`, "")
	s = forAgent(s)
	s.Agent.Programs = []agents.Part{
		{Path: "/home/u/project/bin/claude"},
		{Path: "/home/u/bin/claude"},
		{Path: "/home/u/bin/good"},
		{Path: "/home/u/cache/by", Beside: []string{"/home/u/secret/modules", "/home/u"}},
	}
	c := New(s.Input, nil, nil).Compile(document.KindTool)
	for path, want := range map[string]string{
		"/home/u/secret/tool": "none", "/home/u/.ssh/id": "none",
		"/home/u/secret/modules/x": "none", "/home/u/x": "none",
		"/home/u/tools/good": "read,execute",
	} {
		if got := accessOf(c, path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
