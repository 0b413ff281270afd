package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// Toolchains bring their registries while the network is off, and nobody but
// the user can say so.
func TestHosts_OfToolchains(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	const golang, off = "proxy.golang.org:443 sum.golang.org:443", `"allow_network": false, "toolchains": ["go"]`
	for _, test := range []struct{ user, project, allowed string }{
		{off, "", golang},
		{off + `, "allowed_hosts": ["a.org"]`, "", "a.org " + golang},
		{off + `, "denied_hosts": ["*.golang.org"]`, "", golang}, // which denied_hosts then refuses
		{`"toolchains": ["go"]`, "", ""},                         // the network is on
		{`"toolchains": ["go"]`, `"allow_network": false`, golang},
		{off, `"toolchains": []`, ""},
		{`"allow_network": false`, `"toolchains": ["go"]`, ""},
		{off, `"toolchains": ["go", "rust"]`, golang},
		{off, `"allowed_hosts": []`, ""},
		{off, `"allowed_hosts": ["*.golang.org", "a.org"]`, golang},
		{off, `"allowed_hosts": ["sum.golang.org"]`, "sum.golang.org:443"},
		{off, `"mode": "strict"`, ""},
		// What is empty, wrong or strict opens nothing.
		{off + `, "allowed_hosts": []`, "", ""},
		{off + `, "allowed_hosts": []`, `"allowed_hosts": ["sum.golang.org"]`, ""},
		{off + `, "allowed_hosts": "none"`, "", ""},
		{off + `, "tool": {"allowed_hosts": 5}`, "", ""},
		{off + `, "denied_hosts": ["*"]`, "", ""},
		{`"mode": "strict", "toolchains": ["go"]`, "", ""},
		{`"mode": "strict", "toolchains": ["go"], "allowed_hosts": ["a.org"]`, "", "a.org " + golang},
	} {
		project := test.project
		if project != "" {
			project = "{" + project + "}"
		}
		s := snapshotOf(t, f, `{"enabled": true, `+test.user+`}`, project)
		network := s.Compile(document.KindTool).Policy.Network
		if got := strings.Join(patternsIn(network.AllowedHosts), " "); got != test.allowed {
			t.Errorf("%s and %s allow %q, want %q", test.user, test.project, got, test.allowed)
		}
	}
	s := snapshotOf(t, f, `{"enabled": true, `+off+`, "denied_hosts": ["sum.golang.org"]}`, "")
	x, err := Why(s, document.KindTool, Connect, "proxy.golang.org:443")
	must(t, err)
	if !x.Allowed || !strings.Contains(x.Reason, "toolchains: go") {
		t.Errorf("explained by %+v", x)
	}
	if x, _ := Why(s, document.KindTool, Connect, "sum.golang.org:443"); x.Allowed {
		t.Errorf("a denied host: %+v", x)
	}
	if d := s.Diagnostics(); len(d) > 0 {
		t.Errorf("diagnostics: %+v", d)
	}
}

func TestExplain_OfAHostNamesTheEntry(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	s := snapshotOf(t, f, `{"enabled": true, "allow_network": false,
		"allowed_hosts": ["*.a.org:443", "localhost:1", "10.0.0.0/8", "tcp://ssh.a.org:443"],
		"denied_hosts": ["bad.a.org"]}`,
		`{"denied_hosts": ["theirs.a.org"]}`)
	for target, want := range map[string]Answer{
		"x.a.org:443":              {Allowed: true, Key: "allowed_hosts"},
		"X.A.org.:443":             {Allowed: true, Key: "allowed_hosts"},
		"x.a.org:80":               {Key: "allowed_hosts", Value: "x.a.org:80"},
		"tcp://x.a.org:443":        {Key: "allowed_hosts", Value: "tcp://x.a.org:443"},
		"tcp://ssh.a.org:443":      {Allowed: true, Key: "allowed_hosts"},
		"tcp://10.1.2.3:443":       {Key: "allowed_hosts", Value: "tcp://10.1.2.3:443"},
		"tcp://10.1.2.3:80":        {Allowed: true, Key: "allowed_hosts"},
		"tcp://bad.a.org:443":      {},
		"bad.a.org:443":            {},
		"theirs.a.org:443":         {},
		"host.sandbox.internal:1":  {Allowed: true, Key: "allowed_hosts"},
		"host.sandbox.internal:22": {Key: "allowed_hosts", Value: "localhost:22"},
		"10.1.2.3:80":              {Allowed: true, Key: "allowed_hosts"},
		"[2001:db8::1]:80":         {Key: "allowed_hosts", Value: "[2001:db8::1]:80"},
		"127.0.0.1:80":             {Allowed: true}, // the session's own
		"198.18.3.4:80":            {},
		"169.254.169.254:80": {
			Key: "allowed_hosts", Value: "169.254.169.254:80", Holds: "credentials of this machine",
		},
		"[64:ff9b::a9fe:a9fe]:80": {
			Key: "allowed_hosts", Value: "[64:ff9b::a9fe:a9fe]:80",
			Holds: "credentials of this machine",
		},
	} {
		x, err := Why(s, document.KindTool, Connect, target)
		must(t, err)
		if x.Allowed != want.Allowed || x.Key != want.Key || x.Value != want.Value || x.Holds != want.Holds {
			t.Errorf("%s: %+v", target, x)
		}
	}
}

// Without any host, and if nobody is asked, an address at port 53 is a DNS
// server's, of no use alone. Any other is one host.
func TestExplain_OfAHostWhileAllAreRefused(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for _, onDenied := range []string{"report", "ask"} {
		s := snapshotOf(t, f, `{"enabled": true, "allow_network": false, "on_denied": "`+onDenied+`"}`, "")
		for target, want := range map[string]string{
			"a.org:443": "allowed_hosts", "8.8.8.8:443": "allowed_hosts", "[2001:db8::1]:22": "allowed_hosts",
			"10.0.0.1:53": "", "127.0.0.1:80": "",
		} {
			x, err := Why(s, document.KindTool, Connect, target)
			must(t, err)
			if x.Key != want {
				t.Errorf("%s: %s: %+v", onDenied, target, x)
			}
		}
	}
	s := snapshotOf(t, f, `{"enabled": true, "allow_network": true}`, `{"allow_network": false}`)
	x, err := Why(s, document.KindTool, Connect, "8.8.8.8:443")
	must(t, err)
	if x.Key != "" {
		t.Errorf("what a project refuses is suggested: %+v", x)
	}
}

func patternsIn(list []policy.Host) []string {
	texts := []string{}
	for _, h := range list {
		texts = append(texts, h.Pattern)
	}
	return texts
}
