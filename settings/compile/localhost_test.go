package compile

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

func TestLocalhost_AProjectOnlyTightens(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	const network = `"allow_network": true`
	const own = network + `, "localhost": "own"`
	for _, test := range []struct {
		user, project string
		want          policy.Localhost
		opened        string
	}{
		{network, "", policy.LocalhostOwn, ""},
		{own, "", policy.LocalhostOwn, ""},
		{network + `, "localhost": "all"`, "", policy.LocalhostAll, ""},
		{network + `, "localhost": "all"`, `"localhost": "own"`, policy.LocalhostOwn, ""},
		{network + `, "localhost": "all"`, `"localhost": "none"`, policy.LocalhostNone, ""},
		{own, `"localhost": "all"`, policy.LocalhostOwn, ""},
		{own, `"localhost": "none"`, policy.LocalhostNone, ""},
		{network + `, "localhost": "none"`, `"localhost": "own"`, policy.LocalhostNone, ""},
		{`"allow_network": false, "localhost": "none"`, "", policy.LocalhostAll, ""}, // it has one of its own
		// Entries.
		{own + `, "allowed_hosts": ["localhost:5432", "a.org"]`, "", policy.LocalhostOwn, "localhost:5432"},
		{own + `, "allowed_hosts": ["tls://localhost:5432"]`, "", policy.LocalhostOwn, "localhost:5432"},
		{network + `, "allowed_hosts": ["localhost:1"], "localhost": "none"`, "", policy.LocalhostNone, ""},
		{own + `, "allowed_hosts": ["localhost:1"], "denied_hosts": ["localhost"]`, "", policy.LocalhostOwn, ""},
		{own + `, "allowed_hosts": ["localhost:1"], "denied_hosts": ["bad..name"]`, "", policy.LocalhostOwn, ""},
		{own, `"allowed_hosts": ["localhost:2375"]`, policy.LocalhostOwn, ""},
		{
			own + `, "allowed_hosts": ["localhost:1", "localhost:2"]`,
			`"allowed_hosts": ["localhost:2", "localhost:3"]`, policy.LocalhostOwn, "localhost:2",
		},
	} {
		s := snapshotOf(t, f, `{"enabled": true, `+test.user+`}`, projectText(test.project))
		got := s.Compile(document.KindTool).Policy.Network
		if got.Localhost != test.want || strings.Join(patternsIn(got.LocalHosts), " ") != test.opened {
			t.Errorf("%s, %s: %q %v, want %q %q", test.user, test.project, got.Localhost, patternsIn(got.LocalHosts),
				test.want, test.opened)
		}
	}
}

func projectText(keys string) string {
	if keys == "" {
		return ""
	}
	return "{" + keys + "}"
}

// A project that closes the network and lists hosts opens no service of this
// machine that was closed before.
func TestLocalhost_AListOfHostsDoesNotOpenIt(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	project := `{"allow_network": false, "allowed_hosts": ["a.org", "localhost:2375"]}`
	for user, want := range map[string]string{
		`{"enabled": true, "localhost": "own"}`:                                       "a.org",
		`{"enabled": true, "localhost": "own", "allowed_hosts": ["localhost:2375"]}`:  "a.org localhost:2375",
		`{"enabled": true, "localhost": "all"}`:                                       "a.org localhost:2375",
		`{"enabled": true, "localhost": "none", "allowed_hosts": ["localhost:2375"]}`: "a.org",
	} {
		s := snapshotOf(t, f, user, project)
		list := s.Compile(document.KindTool).Policy.Network.AllowedHosts
		if got := strings.Join(patternsIn(list), " "); got != want {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}

func TestLocalhost_ProxiesOfTheMachine(t *testing.T) {
	t.Parallel()
	own, err := os.Hostname()
	must(t, err)
	f := resolvetest.InMemory(map[string]string{
		"/etc/hosts": "127.0.0.1 localhost\n127.0.1.1 Full.example.org full # not.example.org\n" +
			"10.0.0.1 far.example.org\n",
	})
	f.Addresses = func() ([]string, error) { return []string{"192.168.1.5", "fd00::5"}, nil }
	e := snapshotOf(t, f, `{"enabled": true}`, "").evaluation(document.KindTool)
	for text, want := range map[string]uint16{
		"http://127.0.0.1:3128": 3128, "localhost:8080": 8080, "http://me:secret@localhost:1/": 1,
		"socks5h://[::1]:1080":      1080,
		"http://localhost":          80,
		"http://proxy.example:3128": 0, "": 0, "http://10.0.0.1:3128": 0, "socks5://localhost": 1080,
		"http://localhost:99999": 0, "\x00": 0,
		"http://127.1:2": 2, "http://localhost.:3": 3, "http://LOCALHOST:4": 4, "http://a.localhost:5": 5,
		"http://0.0.0.0:6": 6, "http://" + own + ":7": 7, "http://127.example.org:8": 0, "http://:9": 0,
		"http://[::ffff:127.0.0.1]:10": 10, "http://localhost.example.org:11": 0,
		"http://full.example.org:12": 12, "http://not.example.org:13": 0, "http://far.example.org:14": 0,
		"http://" + own + ".example.org:15": 0,
		"http://192.168.1.5:16":             16, "http://[fd00::5]:17": 17, "http://[::ffff:192.168.1.5]:18": 18,
		"http://192.168.1.6:19": 0,
	} {
		if got := e.localProxy(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if risks.Obeying[9229] == "" || risks.Obeying[2375] == "" || risks.Obeying[5678] == "" {
		t.Error("a debugger could pass for a proxy")
	}
}

// Sessions of one working tree share their services, also those of its directories.
func TestLocalhost_IsThatOfTheWorkingTree(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/home/u/.git/HEAD": "", "/home/u/a/.git/HEAD": "", "/home/u/a/b/c/": "", "/home/u/a/sub/.git": "gitdir: x",
		"/home/u/plain/x/": "", "/srv/.git": "-> nowhere", "/srv/x/": "", "/link": "-> /home/u/a/b",
	})
	for project, want := range map[string]string{
		"/home/u/a": "/home/u/a", "/home/u/a/b/c": "/home/u/a", "/home/u/a/sub": "/home/u/a/sub",
		"/home/u/plain/x": "/home/u/plain/x", "/home/u": "/home/u", "/srv/x": "/srv", "/link/c": "/home/u/a", "/": "/",
		"/home": "/home", "/home/u/a/none": "/home/u/a",
	} {
		for settings, counts := range map[string]bool{
			`{"enabled": true, "localhost": "own"}`: true, `{"enabled": true, "localhost": "none"}`: false,
			`{"enabled": true, "localhost": "all"}`: false, `{"enabled": true, "allow_network": false}`: false,
		} {
			s := snapshotOf(t, tree, settings, "")
			s.ProjectDir = project
			got := s.Compile(document.KindTool).Policy.Network.LocalhostOf
			if counts && got != want || !counts && got != "" {
				t.Errorf("%s, %s: %q, want %q", project, settings, got, want)
			}
		}
	}
}

// A working tree that a group may write is the user's: a umask of 002 is usual. One
// below what everybody may write could be anybody's.
func TestLocalhost_WhoMayWriteTheWorkingTree(t *testing.T) {
	t.Parallel()
	for mode, want := range map[fs.FileMode]string{
		0o755: "/srv/a", 0o775: "/srv/a", fs.ModeSetgid | 0o770: "/srv/a", 0o777: "/srv/a/b",
		fs.ModeSticky | 0o777: "/srv/a/b",
	} {
		f := resolvetest.InMemory(map[string]string{"/srv/a/.git/HEAD": "", "/srv/a/b/": ""})
		lstat := f.Lstat
		f.Lstat = func(path string) (fs.FileMode, error) {
			found, err := lstat(path)
			if path == "/srv/a" {
				found |= mode
			}
			return found, err
		}
		s := snapshotOf(t, f, `{"enabled": true, "localhost": "own"}`, "")
		s.ProjectDir = "/srv/a/b"
		if got := s.Compile(document.KindTool).Policy.Network.LocalhostOf; got != want {
			t.Errorf("%v: %q, want %q", mode, got, want)
		}
	}
}

func TestLocalhost_BadValues(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for _, value := range []string{`"maybe"`, `true`, `3`, `["own"]`} {
		s := snapshotOf(t, f, "{\"enabled\": true,\n\"localhost\": "+value+"}", "")
		found := slices.ContainsFunc(s.Diagnostics(), func(d document.FileDiagnostic) bool {
			return d.Key == "localhost" && d.Line == 2 && d.Severity == document.SeverityError && d.File != ""
		})
		if !found {
			t.Errorf("%s: %v", value, s.Diagnostics())
		}
	}
}

// What a trusted project opens of this machine is asked for.
func TestLocalhost_TrustSaysWhatItOpens(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, nil)
	for project, want := range map[string]string{
		`{"localhost": "all"}`:                                          "localhost",
		`{"allowed_hosts": ["localhost:2375"]}`:                         "allowed_hosts",
		`{"allow_network": false, "allowed_hosts": ["localhost:2375"]}`: "allowed_hosts",
		`{"localhost": "own"}`:                                          "",
		`{"localhost": "none"}`:                                         "",
	} {
		s := snapshotOf(t, f, `{"enabled": true, "localhost": "own"}`, project)
		var keys []string
		for _, ask := range s.Project().Asks {
			keys = append(keys, ask.Key)
		}
		if strings.Join(keys, " ") != want {
			t.Errorf("%s: %v, want %q", project, s.Project().Asks, want)
		}
	}
}
