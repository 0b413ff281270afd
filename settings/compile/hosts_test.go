package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/tests/harness"
)

func patternsIn(list []policy.Host) []string {
	texts := []string{}
	for _, h := range list {
		texts = append(texts, h.Pattern)
	}
	return texts
}

func TestHosts_AProjectOnlyTakesThemAway(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for _, test := range []struct {
		user, project   string
		allowed, denied string
	}{
		{`"allow_network": false, "allowed_hosts": ["b.org", "A.org."]`, "", "a.org b.org", ""},
		{`"allow_network": false, "allowed_hosts": ["a.org"]`, `"allowed_hosts": ["a.org", "b.org"]`, "a.org", ""},
		{`"allow_network": false, "allowed_hosts": ["*.a.org"]`, `"allowed_hosts": ["x.a.org:1"]`, "x.a.org:1", ""},
		{`"allow_network": false, "allowed_hosts": ["*.a.org:1"]`, `"allowed_hosts": ["x.a.org"]`, "x.a.org:1", ""},
		{`"allow_network": false, "allowed_hosts": ["a.org"]`, `"allowed_hosts": []`, "", ""},
		{`"allow_network": false, "allowed_hosts": ["a.org"]`, `"allow_network": true`, "a.org", ""},
		{
			`"allow_network": false, "allowed_hosts": ["a.org"], "denied_hosts": ["b.a.org"]`,
			`"denied_hosts": ["*.com"]`, "a.org", "*.com b.a.org",
		},
		{`"allow_network": true`, `"allow_network": false, "allowed_hosts": ["a.org"]`, "a.org", ""},
		{`"allow_network": true, "allowed_hosts": ["a.org"]`, "", "", ""},
		{`"allow_network": false`, `"allowed_hosts": ["a.org"]`, "", ""},
		// What may be spoken is a part of it.
		{
			`"allow_network": false, "allowed_hosts": ["a.org"]`, `"allowed_hosts": ["tcp://a.org:443"]`,
			"a.org:443", "",
		},
		{
			`"allow_network": false, "allowed_hosts": ["tcp://a.org:443"]`, `"allowed_hosts": ["a.org"]`, "a.org:443", "",
		},
		{
			`"allow_network": false, "allowed_hosts": ["tcp://a.org:443"]`, `"allowed_hosts": ["tcp://*.org:443"]`, "", "",
		},
		{
			`"allow_network": false, "allowed_hosts": ["a.org:636"]`, `"allowed_hosts": ["tls://a.org:636"]`,
			"tls://a.org:636", "",
		},
		{
			`"allow_network": false, "allowed_hosts": ["tls://a.org:636"]`, `"allowed_hosts": ["tcp://a.org:636"]`,
			"tls://a.org:636", "",
		},
		{
			`"allow_network": true`, `"allow_network": false, "allowed_hosts": ["tcp://a.org:443"]`, "tcp://a.org:443", "",
		},
		{`"allow_network": false, "allowed_hosts": ["a.org"], "denied_hosts": ["tcp://b.org:1"]`, "", "", ""},
		// What is wrong opens nothing.
		{`"allow_network": false, "allowed_hosts": ["*", "a.org", "*.com", "x:0"]`, "", "a.org", ""},
		{`"allow_network": false, "allowed_hosts": ["a.org"], "denied_hosts": ["*"]`, "", "", ""},
		{`"allow_network": false, "allowed_hosts": ["a.org"]`, `"denied_hosts": ["bad..name"]`, "", ""},
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
		if got := strings.Join(patternsIn(network.DeniedHosts), " "); got != test.denied {
			t.Errorf("%s and %s deny %q, want %q", test.user, test.project, got, test.denied)
		}
	}
}

func TestHosts_MistakesHaveALineAndAColumn(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	s := snapshotOf(t, f, `{"enabled": true, "allow_network": false,
		"allowed_hosts": ["a.org",
			"*.com", "tcp://a.org"], "denied_hosts": ["a.org:0"]}`, "")
	var found []string
	for _, d := range s.Diagnostics() {
		found = append(found, d.Key)
		if d.Line == 0 || d.Column == 0 || d.Severity != document.SeverityError {
			t.Errorf("%+v", d)
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, []string{"allowed_hosts", "allowed_hosts", "denied_hosts"}) {
		t.Errorf("diagnostics on %q", found)
	}
	if doubt := s.Compile(document.KindTool).Doubt; doubt == nil || !doubt.Refused || doubt.Key != "denied_hosts" {
		t.Errorf("a wrong entry of denied_hosts leaves %+v", doubt)
	}
}

func TestHosts_WithoutEffectAreDiagnosed(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	s := snapshotOf(t, f, `{"enabled": true, "allow_network": true, "allowed_hosts": ["a.org"]}`, "")
	got := said(s.Compile(document.KindTool), userFile)
	if !strings.Contains(got, "has no effect while allow_network") {
		t.Errorf("got %s", got)
	}
	s = snapshotOf(t, f, `{"enabled": true, "allow_network": false, "allowed_hosts": ["b.a.org"],
		"denied_hosts": ["*.a.org"]}`, "")
	if got := said(s.Compile(document.KindTool), userFile); !strings.Contains(got, "is refused by denied_hosts") {
		t.Errorf("got %s", got)
	}
}

func TestHosts_OfATrustedProjectAreAskedFor(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	user := `{"enabled": true, "allow_network": false, "allowed_hosts": ["a.org"], ` +
		`"denied_hosts": ["b.a.org", "a.org:22"]}`
	asks := func(project string) string {
		var list []string
		for _, a := range snapshotOf(t, f, user, project).Project().Asks {
			list = append(list, a.Key+" "+a.Value)
		}
		return strings.Join(list, "; ")
	}
	for project, want := range map[string]string{
		`{"allowed_hosts": ["a.org", "evil.org:1"]}`:            "allowed_hosts evil.org:1",
		`{"allowed_hosts": ["a.org:1"]}`:                        "",
		`{"denied_hosts": []}`:                                  "denied_hosts []",
		`{"denied_hosts": ["b.a.org", "a.org:22", "more.org"]}`: "",
		`{"toolchains": ["dotnet"]}`:                            "toolchains dotnet",
	} {
		if got := asks(project); got != want {
			t.Errorf("%s asks for %q, want %q", project, got, want)
		}
	}
}

// Who trusts a project sees which hosts its toolchains bring.
func TestHosts_OfAProjectsToolchainsAreAskedFor(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for _, test := range []struct{ user, project, opens string }{
		{`"allow_network": false`, `"toolchains": ["c"]`, `toolchains: may connect to "center2.conan.io:443"`},
		{
			`"allow_network": false, "toolchains": ["c"], "allowed_hosts": []`, `"allowed_hosts": ["a.org"]`,
			`allowed_hosts: sessions may connect to "center2.conan.io:443", and send there what they can read`,
		},
		{`"allow_network": false, "allowed_hosts": ["*.conan.io"]`, `"toolchains": ["c"]`, ""},
	} {
		asks := snapshotOf(t, f, `{"enabled": true, `+test.user+`}`, "{"+test.project+"}").Project().Asks
		found := test.opens == ""
		for _, a := range asks {
			connects := strings.Contains(a.Opens, "conan.io")
			if test.opens == "" && connects {
				t.Errorf("%s asks for what the user has: %+v", test.project, a)
			}
			key, opens, _ := strings.Cut(test.opens, ": ")
			found = found || a.Key == key && strings.Contains(a.Opens, opens)
		}
		if !found {
			t.Errorf("%s asks for %+v, want %s", test.project, asks, test.opens)
		}
	}
}

func TestHosts_TenThousandAreFast(t *testing.T) {
	t.Parallel()
	harness.Linear(t, 10_000, func(n int) {
		f := resolvetest.Tree(t, nil)
		var allowed, denied []string
		for i := range n {
			allowed = append(allowed, fmt.Sprintf(`"h%d.a.org"`, i))
			denied = append(denied, fmt.Sprintf(`"d%d.a.org"`, i))
		}
		lists := `"allowed_hosts": [` + strings.Join(allowed, ",") + `], "denied_hosts": [` +
			strings.Join(denied, ",") + `]`
		s := snapshotOf(t, f, `{"enabled": true, "allow_network": false, `+lists+`}`, `{`+lists+`}`)
		if got := len(s.Compile(document.KindTool).Policy.Network.AllowedHosts); got != n {
			t.Errorf("%d hosts are allowed", got)
		}
	})
}

// A list of hosts that no session can reach here is told at its line; without a
// list, or with the whole network, nobody asks the machine.
func TestHosts_SayWhatThisMachineCannotDo(t *testing.T) {
	t.Parallel()
	for block, want := range map[string]bool{
		`"allow_network": false, "allowed_hosts": ["a.org"]`: true,
		`"allow_network": true, "allowed_hosts": ["a.org"]`:  false,
		`"allow_network": false, "allowed_hosts": []`:        false, `"allow_network": false`: false,
	} {
		for _, gap := range []string{"", "the kernel is old"} {
			s := snapshotOf(t, resolvetest.Tree(t, nil), `{"enabled": true, `+block+`}`, "")
			asked := false
			s.HostsGap = func() string {
				asked = true
				return gap
			}
			got := said(s.Compile(document.KindTool), userFile)
			if asked != want ||
				strings.Contains(got, "so sessions have no network: the kernel is old") != (want && gap != "") {
				t.Errorf("%s, %q: asked: %v: %s", block, gap, asked, got)
			}
		}
	}
}
