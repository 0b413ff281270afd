package compile

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestKinds_EachBlockOverridesTheOtherKeys(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/srv/a/": "", "/srv/b/": ""})
	tests := []struct{ user, project, terminal, tool string }{
		{
			`{"enabled": true, "tool": {"allow_network": false}}`, ``,
			"restricted, network, none none", "restricted, offline, none none",
		},
		{
			`{"enabled": true, "allow_network": false, "terminal": {"allow_network": true}}`, ``,
			"restricted, network, none none", "restricted, offline, none none",
		},
		{
			`{"enabled": true, "additional_read_only_paths": ["/srv/a"],
				"tool": {"additional_read_only_paths": ["/srv/b"]}}`, ``,
			"restricted, network, read none", "restricted, network, none read",
		},
		{`{"tool": {"enabled": true}}`, ``, "free, network, none none", "restricted, network, none none"},
		{
			`{"enabled": true, "apply_to": "terminal", "tool": {"enabled": true}}`, ``,
			"restricted, network, none none", "restricted, network, none none",
		},
		{
			`{"enabled": true, "terminal": {"enabled": false}}`, ``,
			"free, network, none none", "restricted, network, none none",
		},
		// A project's block tightens its kind alone, and never loosens.
		{
			`{"enabled": true, "additional_read_only_paths": ["/srv"]}`,
			`{"tool": {"enabled": false, "allow_network": false, "additional_read_only_paths": ["/srv/a"]}}`,
			"restricted, network, read read", "restricted, offline, read none",
		},
		{
			`{"enabled": true, "tool": {"allow_network": false}}`,
			`{"allow_network": true, "terminal": {"allow_network": false}, "tool": {"allow_network": true}}`,
			"restricted, offline, none none", "restricted, offline, none none",
		},
		{`{}`, `{"tool": {"enabled": true}}`, "free, network, none none", "restricted, network, none none"},
	}
	for _, test := range tests {
		s := snapshotOf(t, f, test.user, test.project)
		for kind, want := range map[document.Kind]string{
			document.KindTerminal: test.terminal, document.KindTool: test.tool,
		} {
			c := s.Compile(kind)
			got := "free, "
			if c.Policy.Restricted {
				got = "restricted, "
			}
			if c.Policy.Network.Allowed {
				got += "network, "
			} else {
				got += "offline, "
			}
			got += accessOf(c, "/srv/a/x") + " " + accessOf(c, "/srv/b/x")
			if got != want {
				t.Errorf("%s\nuser    %s\nproject %s\ngot  %s\nwant %s", kind, test.user, test.project, got, want)
			}
			// What is shown as the merged settings means the same.
			merged := s.Merged()
			block := merged.Tool
			if kind == document.KindTerminal {
				block = merged.Terminal
			}
			online := *merged.AllowNetwork
			if block != nil && block.AllowNetwork != nil {
				online = *block.AllowNetwork
			}
			if online != c.Policy.Network.Allowed {
				t.Errorf("%s: merged network %t with %s, %s", kind, online, test.user, test.project)
			}
		}
	}
}

// A tool could point the link elsewhere, so no terminal may follow it.
func TestKinds_ALinkThatOneKindMayMoveCountsForNone(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/srv/a/link": "-> ../b", "/srv/b/": ""})
	s := snapshotOf(t, f, `{"enabled": true, "tool": {"additional_read_write_paths": ["/srv/a"]},
		"terminal": {"additional_read_only_paths": ["/srv/a/link"]}}`, "")
	c := s.Compile(document.KindTerminal)
	if got := accessOf(c, "/srv/b/x"); got != "none" {
		t.Errorf("granted %s", got)
	}
	if got := said(c, userFile); !strings.Contains(got, "crosses the symlink") {
		t.Errorf("diagnostics: %s", got)
	}
}

// The list of trusted projects must be out of reach of every kind.
func TestKinds_NoProjectIsTrustedIfOneKindCouldTrustIt(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/.local/state/": ""})
	s := trusting(t, f, `{"enabled": true, "tool": {"additional_read_write_paths": ["~/.local"]}}`,
		`{"allow_network": true}`)
	for _, e := range s.evaluations() {
		if e.trusted || !strings.Contains(e.exposure, "sessions could write the list of trusted projects") {
			t.Errorf("%s: trusted %t, %q", e.kind, e.trusted, e.exposure)
		}
	}
}
