package explain

import (
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/compile"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

// What programs do first with a name, each with an address or a family of
// sockets that the denial names.
var firstCalls = map[string]string{
	"a DNS server":             "10.0.0.2:53",
	"one of IPv6":              "[2001:db8::53]:53",
	"mDNS":                     "224.0.0.251:5353",
	"mDNS by IPv6":             "[ff02::fb]:5353",
	"LLMNR":                    "224.0.0.252:5355",
	"a broadcast":              "255.255.255.255:67",
	"a socket, unknown where":  "inet",
	"one of IPv6, as well":     "inet6",
	"the list of addresses":    "netlink",
	"no port, as of ping":      "192.0.2.1:0",
	"an address that is given": "198.18.3.4:443",
}

// Who follows the advice opens hosts, and never the whole network.
func TestOffline_ALookupAdvisesSingleHosts(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for what, target := range firstCalls {
		for settings, advised := range map[string]bool{
			`"allow_network": false`:                               true,
			`"mode": "strict"`:                                     true,
			`"allow_network": false, "on_denied": "ask"`:           false,
			`"allow_network": false, "allowed_hosts": ["a.org"]`:   false,
			`"allow_network": false, "toolchains": ["go"]`:         false,
			`"tool": {"allow_network": false}`:                     true,
			`"tool": {"mode": "strict", "allowed_hosts": ["a.b"]}`: false,
		} {
			s := snapshotOf(t, f, `{"enabled": true, `+settings+`}`, "")
			x, err := Why(s, document.KindTool, Connect, target)
			must(t, err)
			suggestion, err := Suggest(s, document.KindTool, "connect", target, "curl")
			must(t, err)
			if x.Allowed || x.Key != "" || suggestion.Key != "" || suggestion.Allowed {
				t.Errorf("%s, %s: %+v\n%+v", what, settings, x, suggestion)
			}
			text := x.Reason + "; " + x.Hint + "; " + suggestion.Hint
			if strings.Contains(x.Hint+suggestion.Hint, "allow_network") ||
				advised != strings.Contains(x.Hint, `"allowed_hosts" opens single hosts`) ||
				advised != strings.Contains(suggestion.Hint, `"allowed_hosts" opens single hosts`) ||
				strings.Contains(text, "localhost") {
				t.Errorf("%s, %s: %s", what, settings, text)
			}
			if about := suggestion.List; about != "" != advised || advised && about != allowedHostsKey {
				t.Errorf("%s, %s: it is about %q", what, settings, about)
			}
		}
	}
}

// Where no entry of the user's would help, none is advised.
func TestOffline_WhoClosesTheNetworkIsNamed(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	project := snapshotOf(t, f, `{"enabled": true}`, `{"allow_network": false}`)
	organisation := managedSnapshot(t, f, `{}`, `{"allow_network": false}`, `{"enabled": true}`)
	for what, target := range firstCalls {
		x, err := Why(project, document.KindTool, Connect, target)
		must(t, err)
		if x.Key != "" || x.List != "" || !strings.Contains(x.Hint, "takes it away") {
			t.Errorf("%s, the project's file: %+v", what, x)
		}
		x, err = Why(organisation, document.KindTool, Connect, target)
		must(t, err)
		if x.Key != "" || x.List != "" || !strings.Contains(x.Hint, "your organisation") {
			t.Errorf("%s, the organisation: %+v", what, x)
		}
	}
}

// The services that look names up for programs are no way out either.
func TestOffline_SocketsOfNameServicesAreNotSuggested(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/run/nscd/socket": "", "/run/systemd/resolve/io.systemd.Resolve": "", "/run/avahi-daemon/socket": "",
		"/var/run": "-> /run", "/run/other": "",
	})
	for network, hint := range map[string]string{
		"true": "looked up without it", "false": `"allowed_hosts" opens single hosts`,
	} {
		s := snapshotOf(t, f, `{"enabled": true, "allow_network": `+network+`}`, "")
		for _, path := range []string{
			"/run/nscd/socket", "/var/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve",
			"/run/avahi-daemon/socket",
		} {
			x, err := Why(s, document.KindTool, ConnectUnix, path)
			must(t, err)
			suggestion, err := Suggest(s, document.KindTool, "connect_unix", path, "curl")
			must(t, err)
			if !x.Careful() || suggestion.Key != "" || !strings.Contains(suggestion.Hint, hint) ||
				strings.Contains(suggestion.Hint, "allowed_unix_sockets") {
				t.Errorf("network %s, %s: %+v\n%+v", network, path, x, suggestion)
			}
		}
		suggestion, err := Suggest(s, document.KindTool, "connect_unix", "/run/other", "curl")
		must(t, err)
		if suggestion.Key == "" {
			t.Errorf("control: %+v", suggestion)
		}
	}
}

// A session without the network has a localhost to itself.
func TestOffline_TheSessionsOwnLocalhostIsAllowed(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for _, settings := range []string{
		`"allow_network": false`, `"allow_network": false, "allowed_hosts": ["a.org", "localhost:8080"]`,
		`"mode": "strict"`, `"allow_network": false, "on_denied": "ask"`,
		`"allow_network": false, "localhost": "none"`,
	} {
		s := snapshotOf(t, f, `{"enabled": true, `+settings+`}`, "")
		for _, host := range []string{
			"localhost", "127.0.0.1", "127.8.9.1", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]",
		} {
			for _, attempt := range []Attempt{Bind, Connect} {
				x, err := Why(s, document.KindTool, attempt, host+":8080")
				must(t, err)
				if !x.Allowed || x.Key != "" || !strings.Contains(x.Reason, "session's own") ||
					!strings.Contains(x.Hint, "if this machine can isolate it") {
					t.Errorf("%s, %s %s: %+v", settings, attempt, host, x)
				}
				if at := strings.Contains(x.Hint, "host.sandbox.internal:8080"); at != (attempt == Connect) {
					t.Errorf("%s, %s %s: %s", settings, attempt, host, x.Hint)
				}
				// Who is refused there has no such localhost.
				suggestion, err := Suggest(s, document.KindTool, string(attempt), host+":8080", "node")
				must(t, err)
				if suggestion.Allowed || suggestion.Key != "" || suggestion.Hint != noLocalhost {
					t.Errorf("%s, %s %s: %+v", settings, attempt, host, suggestion)
				}
			}
		}
		for _, address := range []string{"192.0.2.1:8080", "[2001:db8::1]:8080", "224.0.0.251:5353"} {
			x, err := Why(s, document.KindTool, Bind, address)
			must(t, err)
			suggestion, err := Suggest(s, document.KindTool, "bind", address, "node")
			must(t, err)
			if x.Allowed || x.Key != "allow_network" || !x.Careful() || suggestion.Key != "" ||
				!strings.Contains(suggestion.Hint, "127.0.0.1") {
				t.Errorf("%s, bind %s: %+v\n%+v", settings, address, x, suggestion)
			}
		}
		given, err := Why(s, document.KindTool, Bind, "198.18.0.5:80")
		must(t, err)
		if want := strings.Contains(settings, "a.org") || strings.Contains(settings, "ask"); given.Allowed != want {
			t.Errorf("%s: %+v", settings, given)
		}
	}
	// A Mac isolates none, and the machine's own is another.
	s := snapshotOf(t, f, `{"enabled": true, "allow_network": false}`, "")
	x, err := Why(s, document.KindTool, Connect, "host.sandbox.internal:8080")
	must(t, err)
	if x.Allowed || x.Value != "localhost:8080" {
		t.Errorf("the machine's: %+v", x)
	}
	in := s.Input
	in.Host.Platform = "darwin"
	s = compile.New(in, nil, nil)
	for _, attempt := range []Attempt{Bind, Connect} {
		x, err := Why(s, document.KindTool, attempt, "127.0.0.1:8080")
		must(t, err)
		if x.Allowed || x.Key != "" && attempt == Connect {
			t.Errorf("on a Mac, %s: %+v", attempt, x)
		}
	}
}
