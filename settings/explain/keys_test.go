package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/managed"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/settingstest"
)

func TestKinds_AreNamedWhereTheyCount(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/srv/a/": ""})
	s := snapshotOf(t, f, `{"enabled": true,
		"tool": {"allow_network": false, "additional_read_only_paths": ["/srv/a", "rel"]}}`, "")
	c := s.Compile(document.KindTool)
	if got := c.Policy.Network.Origin.String(); !strings.HasPrefix(got, "tool.allow_network (") {
		t.Errorf("the network's origin is %s", got)
	}
	rule, _ := c.Policy.Find(policy.Read, "/srv/a/x")
	if rule.Origin.Written != "tool.additional_read_only_paths" || rule.Origin.Key != "additional_read_only_paths" {
		t.Errorf("the rule's origin is %+v", rule.Origin)
	}
	if got := said(c, userFile); !strings.Contains(got, `tool.additional_read_only_paths: "rel": `) {
		t.Errorf("diagnostics: %s", got)
	}
	origins := s.Origins()
	if origins["tool.allow_network"] != userFile || origins["allow_network"] != policy.OriginBuiltIn {
		t.Errorf("origins: %v", origins)
	}
	x, err := Why(s, document.KindTool, Connect, "example.org:443")
	must(t, err)
	advice := x.suggestion().Instruction()
	if x.Allowed || x.Key != "allowed_hosts" || advice != `add "example.org:443" to "allowed_hosts"` {
		t.Errorf("tool: %+v", x)
	}
	if x, err = Why(s, document.KindTerminal, Connect, "example.org:443"); err != nil || !x.Allowed {
		t.Errorf("terminal: %+v, %v", x, err)
	}
	if got := said(snapshotOf(t, f, "", `{"tool": {"allow_network": true}, "enabled": true}`).
		Compile(document.KindTool), projectFile); got != "" {
		t.Errorf("diagnostics: %s", got)
	}
	project := snapshotOf(t, f, `{"enabled": true}`, `{"tool": {"additional_read_only_paths": ["/srv/a"]}}`)
	if asks := project.Project().Asks; len(asks) != 1 || asks[0].Key != "tool.additional_read_only_paths" {
		t.Errorf("asks: %+v", asks)
	}
}

func TestModes_AreNamedAsTheOrigin(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/.ssh/id": ""})
	s := snapshotOf(t, f, `{"mode": "relaxed", "tool": {"mode": "strict"}}`, "")
	terminal, tool := s.Compile(document.KindTerminal), s.Compile(document.KindTool)
	if rule, _ := terminal.Policy.Find(policy.Read, "/srv"); rule.Origin.String() != "mode: relaxed ("+userFile+":1)" {
		t.Errorf("the rule's origin is %s", rule.Origin)
	}
	if got := tool.Policy.Network.Origin.String(); got != "tool.mode: strict ("+userFile+":1)" {
		t.Errorf("the network's origin is %s", got)
	}
	if got := said(terminal, userFile); !strings.Contains(got, `info: mode: "relaxed" lets sessions read and execute`) {
		t.Errorf("diagnostics: %s", got)
	}
	x, err := Why(s, document.KindTool, Connect, "example.org:443")
	must(t, err)
	if x.Key != "tool.allowed_hosts" {
		t.Errorf("to allow it: %q", x.Key)
	}
	asks := snapshotOf(t, f, `{"enabled": true}`, `{"mode": "off"}`).Project().Asks
	if len(asks) != 1 || asks[0].Key != "mode" || asks[0].Value != `"off"` {
		t.Errorf("asks: %+v", asks)
	}
}

func TestRequired_IsNamedAsTheOrganisations(t *testing.T) {
	t.Parallel()
	s := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), `{"enabled": true}`,
		`{"allow_network": false, "additional_read_only_paths": []}`, `{"allow_network": true}`)
	for attempt, target := range map[Attempt]string{Read: "/home/u/.ssh/id", Connect: "a.org:443"} {
		x, err := Why(s, document.KindTool, attempt, target)
		if err != nil {
			t.Fatal(err)
		}
		if x.Allowed || x.Key != "" || !strings.Contains(x.Hint+x.Reason, "set by your organisation") {
			t.Errorf("%s: %+v", attempt, x)
		}
	}
	const hides = `{"hidden_paths": ["~/.ssh"]}`
	hiding := managedSnapshot(t, resolvetest.InMemory(settingstest.Tree), "{}", hides, `{"enabled": true}`)
	for _, path := range []string{"/home/u/.ssh/id", "/home/u/.ssh/missing"} {
		if x, err := Why(hiding, document.KindTool, Read, path); err != nil || x.Allowed || x.Key != "" {
			t.Errorf("%s: %+v, %v", path, x, err)
		}
	}
	if from := s.Origins()["allow_network"]; from != managed.File {
		t.Errorf("allow_network comes from %s", from)
	}
}
