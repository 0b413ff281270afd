package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func grantedPath(key, path string) []Addition { return []Addition{{Key: key, Value: path}} }

func grantedTree(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"/srv/a/": "", "/srv/b/": "", "/home/u/project/": "", "/home/u/.config/sandbox-sidecar/settings.json": "",
	}
}

// Entries for the window come beside the user's own. Both keep their origins.
func TestGranted_AddsToTheLists(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, grantedTree(t))
	s := snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["/srv/b"]}`, "")
	with := s.With(grantedPath("additional_read_only_paths", "/srv/a"))
	for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
		before, after := s.Compile(kind), with.Compile(kind)
		if a, b := accessOf(before, "/srv/a"), accessOf(before, "/srv/b"); a != "none" || b != "read" {
			t.Errorf("%s: without the grant a: %s, b: %s", kind, a, b)
		}
		if a, b := accessOf(after, "/srv/a"), accessOf(after, "/srv/b"); a != "read" || b != "read" {
			t.Errorf("%s: with the grant a: %s, b: %s", kind, a, b)
		}
		if before.Policy.ID() == after.Policy.ID() {
			t.Errorf("%s: the policy's id is the same", kind)
		}
		for _, rule := range after.Policy.Rules {
			own := rule.Path == "/srv/b" && rule.Origin.Line > 0 && rule.Origin.File != policy.OriginWindow
			ours := rule.Path == "/srv/a" && rule.Origin.Line == 0 && rule.Origin.File == policy.OriginWindow
			if strings.HasPrefix(rule.Path, "/srv") && !own && !ours {
				t.Errorf("%s: %+v", kind, rule)
			}
		}
	}
}

// A key for one kind, and one that the other kind overrides, open nothing to the
// other.
func TestGranted_CountsForItsKind(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, grantedTree(t))
	const key = "additional_read_only_paths"
	for _, test := range []struct{ user, key, tool, terminal string }{
		{`{"enabled": true}`, key, "read", "read"},
		{`{"enabled": true}`, "tool." + key, "read", "none"},
		{`{"enabled": true}`, "terminal." + key, "none", "read"},
		{`{"enabled": true, "tool": {"` + key + `": []}}`, key, "none", "read"},
		{`{"enabled": true, "tool": {"` + key + `": []}}`, "tool." + key, "read", "none"},
	} {
		s := snapshotOf(t, f, test.user, "").With(grantedPath(test.key, "/srv/a"))
		tool, terminal := accessOf(s.Compile("tool"), "/srv/a"), accessOf(s.Compile("terminal"), "/srv/a")
		if tool != test.tool || terminal != test.terminal {
			t.Errorf("%s, %s: tool %s, terminal %s", test.user, test.key, tool, terminal)
		}
	}
}

// A grant opens what the same entry in the user's file would, and no more: not
// what the organisation takes away, and not what an untrusted project takes away.
func TestGranted_OpensNoMoreThanSettings(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, grantedTree(t))
	const key = "additional_read_write_paths"
	for _, entry := range []string{
		"/srv/a", "/", "/dev", "/nowhere", "~/.config/sandbox-sidecar", "~/.config", "$NONE/x", "relative", "",
	} {
		written := snapshotOf(t, f, fmt.Sprintf(`{"enabled": true, "%s": [%q]}`, key, entry), "")
		plain := snapshotOf(t, f, `{"enabled": true}`, "")
		granted := plain.With(grantedPath(key, entry))
		for _, kind := range []document.Kind{document.KindTool, document.KindTerminal} {
			want, got := written.Compile(kind).Policy, granted.Compile(kind).Policy
			if want.ID() != got.ID() {
				t.Errorf("%s, %q: another policy than by the file", kind, entry)
			}
			if without := plain.Compile(kind).Policy; entry == "/srv/a" && without.ID() == got.ID() {
				t.Errorf("%s: control: %q changes nothing", kind, entry)
			}
		}
	}
	bound := managedSnapshot(t, f, "{}", `{"additional_read_only_paths": ["/srv/b"]}`, `{"enabled": true}`, "")
	bound = bound.With([]Addition{
		{Key: "additional_read_only_paths", Value: "/srv/a"}, {Key: "additional_read_only_paths", Value: "/srv/b"},
	})
	if a, b := accessOf(bound.Compile("tool"), "/srv/a"), accessOf(bound.Compile("tool"), "/srv/b"); a != "none" ||
		b != "read" {
		t.Errorf("beyond the organisation's: a: %s, b: %s", a, b)
	}
	tight := snapshotOf(t, f, `{"enabled": true, "allow_network": true}`, `{"allow_network": false}`)
	host := []Addition{{Key: "allowed_hosts", Value: "example.com"}}
	if p := tight.With(host).Compile("tool").Policy; p.Network.Allowed {
		t.Error("the project's file no longer closes the network")
	}
}
