package compile

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

const (
	testCertificate = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
	testKey         = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"
)

func TestCertificates_AreReadableIfTheyAreNothingElse(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/home/u/project/":           "",
		"/home/u/ca.pem":             testCertificate,
		"/home/u/neighbour.pem":      testCertificate,
		"/home/u/both.pem":           testCertificate + testKey,
		"/home/u/notes.txt":          "hello\n",
		"/home/u/.ssh/ca.pem":        testCertificate,
		"/home/u/certs/a.pem":        testCertificate,
		"/home/u/certs/b.0":          "-> a.pem",
		"/home/u/mixed/a.pem":        testCertificate,
		"/home/u/mixed/sub/notes":    "hello\n",
		"/home/u/keys/a.pem":         testCertificate,
		"/home/u/keys/key.pem":       testKey,
		"/home/u/empty/":             "",
		"/home/u/link.pem":           "-> ca.pem",
		"/tmp/link.pem":              "-> /home/u/ca.pem",
		"/usr/share/ca/corp.pem":     testCertificate,
		"/home/u/project/ca.pem":     "-> ../notes.txt",
		"/home/u/project/.zed/x.txt": "",
	}
	for _, test := range []struct {
		name, value string
		read        string // of path
		path        string // "": value
		warning     string
	}{
		{name: "SSL_CERT_FILE", value: "/home/u/ca.pem", read: "read"},
		{name: "NODE_EXTRA_CA_CERTS", value: "/home/u/link.pem", read: "read", path: "/home/u/ca.pem"},
		{name: "REQUESTS_CA_BUNDLE", value: "/home/u/ca.pem", read: "none", path: "/home/u/neighbour.pem"},
		{name: "PIP_CERT", value: "/usr/share/ca/corp.pem", read: "read,execute"},
		{name: "CURL_CA_BUNDLE", value: "/home/u/none.pem", read: "none"},
		{name: "GIT_SSL_CAINFO", value: "ca.pem", read: "none", path: "/home/u/ca.pem"},
		{name: "AWS_CA_BUNDLE", value: "/home/u/both.pem", read: "none", warning: "it holds a private key"},
		{name: "SSL_CERT_FILE", value: "/home/u/notes.txt", read: "none", warning: "it holds no certificates"},
		{name: "SSL_CERT_FILE", value: "/home/u/.ssh/ca.pem", read: "none", warning: "that is SSH keys"},
		{
			name: "SSL_CERT_FILE", value: "/home/u/project/ca.pem", read: "none", path: "/home/u/notes.txt",
			warning: "it holds no certificates",
		},
		{
			name: "SSL_CERT_FILE", value: "/tmp/link.pem", read: "none", path: "/home/u/ca.pem",
			warning: "which a session may change",
		},
		{name: "SSL_CERT_DIR", value: "/etc/ssl/certs:/home/u/certs", read: "read", path: "/home/u/certs/a.pem"},
		{name: "SSL_CERT_DIR", value: "/home/u/mixed", read: "none", warning: `it also holds "sub"`},
		{name: "SSL_CERT_DIR", value: "/home/u/keys", read: "none", warning: `it also holds "key.pem"`},
		{name: "SSL_CERT_DIR", value: "/home/u/empty", read: "none", warning: "it is empty"},
		{name: "SSL_CERT_DIR", value: "/home/u", read: "none", warning: "that is your home directory"},
		{name: "SSL_CERT_DIR", value: "/", read: "none", path: "/home/u/ca.pem", warning: "and much more"},
		{name: "OTHER_CERT", value: "/home/u/ca.pem", read: "none"},
	} {
		s := snapshotOf(t, resolvetest.Tree(t, tree), `{"enabled": true}`, "")
		s.Host.Env = maps.Clone(s.Host.Env)
		s.Host.Env[test.name] = test.value
		c := s.Compile(document.KindTool)
		path := test.path
		if path == "" {
			path = test.value
		}
		if got := accessOf(c, path); got != test.read {
			t.Errorf("%s=%s: access to %s is %s, want %s", test.name, test.value, path, got, test.read)
		}
		said := strings.Join(c.Risks, "\n")
		if test.warning == "" && said != "" || !strings.Contains(said, test.warning) {
			t.Errorf("%s=%s: said %q, want %q", test.name, test.value, said, test.warning)
		}
	}
}

// A variable that sessions do not get grants nothing.
func TestCertificates_NeedTheVariable(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/ca.pem": testCertificate, "/home/u/project/": ""})
	for _, files := range [][2]string{
		{`{"enabled": true, "allowed_env_vars": ["PATH"]}`, ""},
		{`{"enabled": true}`, `{"allowed_env_vars": ["PATH"]}`},
	} {
		s := snapshotOf(t, f, files[0], files[1])
		s.Host.Env["SSL_CERT_FILE"] = "/home/u/ca.pem"
		if got := accessOf(s.Compile(document.KindTool), "/home/u/ca.pem"); got != "none" {
			t.Errorf("%q: %s", files, got)
		}
	}
}

// A variable opens nothing that is hidden.
func TestCertificates_StayHidden(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/certs/ca.pem": testCertificate, "/home/u/project/": ""})
	for settings, want := range map[string]string{
		`{"enabled": true}`: "read", `{"enabled": true, "hidden_paths": ["~/certs"]}`: "none",
	} {
		s := snapshotOf(t, f, settings, "")
		s.Host.Env = maps.Clone(s.Host.Env)
		s.Host.Env["SSL_CERT_FILE"] = "/home/u/certs/ca.pem"
		p := s.Compile(document.KindTool).Policy
		if got := policy.NewIndex(&p).At("/home/u/certs/ca.pem").String(); got != want {
			t.Errorf("%s: %s, want %s", settings, got, want)
		}
	}
}

func TestProxies_PasswordIsTold(t *testing.T) {
	t.Parallel()
	environment := policy.Environment{Allowed: slices.Sorted(slices.Values(document.DefaultEnvVars))}
	got := proxyPasswords(map[string]string{
		"HTTPS_PROXY": "http://ada:lovelace@proxy:3128", "http_proxy": "http://ada@proxy:3128",
		"HTTP_PROXY": "proxy:3128",
		"ALL_PROXY":  "socks5://:secret@proxy", "NO_PROXY": "a,b", "https_proxy": "://",
	}, environment)
	if want := []string{"HTTPS_PROXY", "ALL_PROXY"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What settings of other programs name as certificates is readable if it is
// nothing else, and if no session can have named it.
func TestCertificates_NamedBySettings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text string
		settings   string
		want       bool
	}{
		"npm":             {".npmrc", "cafile=/home/u/ca.pem\n", "", true},
		"npm, in quotes":  {".npmrc", "cafile = \"~/ca.pem\"\r\n", "", true},
		"npm, a variable": {".npmrc", "cafile=${HOME}/ca.pem\n", "", true},
		"npm, none":       {".npmrc", "cafile=${NOWHERE}/home/u/ca.pem\n", "", false},
		"yarn":            {".yarnrc.yml", "httpsCaFilePath: /home/u/ca.pem\n", "", true},
		"pip":             {".config/pip/pip.conf", "[global]\ncert = /home/u/ca.pem", "", true},
		"curl":            {".curlrc", "--cacert /home/u/ca.pem\n", "", true},
		"wget":            {".wgetrc", "ca_certificate=/home/u/ca.pem\n", "", true},
		"hg":              {".hgrc", "[web]\ncacerts = ~/ca.pem\n", "", true},
		"git": {".gitconfig", "[http \"https://git.corp.example\"]\n" +
			"\tsslCAInfo = ~/ca.pem\n", "", true},
		"beside a secret": {".npmrc", "_auth=x\ncafile=/home/u/ca.pem\n", "", true},
		"a key":           {".npmrc", "cafile=/home/u/key.pem\n", "", false},
		"git, a key":      {".gitconfig", "[http]\nsslCAInfo = ~/key.pem\n", "", false},
		"something else":  {".npmrc", "cafile=/home/u/notes\n", "", false},
		"of a session": {
			".npmrc", "cafile=/home/u/ca.pem\n", `, "additional_read_write_paths": ["~/.npmrc"]`, false,
		},
		"another key":        {".npmrc", "prefix=/home/u/ca.pem\n", "", false},
		"in a place of keys": {".npmrc", "cafile=/home/u/.ssh/ca.pem\n", "", false},
		"hidden":             {".npmrc", "cafile=/home/u/ca.pem\n", `, "hidden_paths": ["~/ca.pem"]`, false},
		"git, of one's home": {".gitconfig", "[http]\nsslCAInfo = ca.pem\n", "", false},
		"git, what it sends": {".gitconfig", "[http]\ncookieFile = ~/ca.pem\n", "", false},
		"git, a session's": {".gitconfig", "[http]\n" +
			"sslCAInfo = ~/ca.pem\n", `, "additional_read_write_paths": ["~/.gitconfig"]`, false},
		"curl, what signs in": {".curlrc", "cert = ~/ca.pem\n", "", false},
		"a comment behind it": {".yarnrc.yml", "httpsCaFilePath: '/home/u/ca.pem' # corp\n", "", true},
		"a directory":         {".curlrc", "capath = /home/u/all\n", "", true},
		"a directory of more": {".curlrc", "capath = /home/u/more\n", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := resolvetest.Tree(t, map[string]string{
				"/home/u/project/": "", "/home/u/" + test.file: test.text, "/home/u/ca.pem": testCertificate,
				"/home/u/key.pem": testCertificate + "-----BEGIN PRIVATE KEY-----\n", "/home/u/notes": "hello\n",
				"/home/u/.ssh/ca.pem": testCertificate, "/home/u/all/a.pem": testCertificate,
				"/home/u/more/a.pem": testCertificate, "/home/u/more/notes": "hello\n",
			})
			p := snapshotOf(t, tree, `{"enabled": true`+test.settings+`}`, "").Compile(document.KindTool).Policy
			path := "/home/u/ca.pem"
			for _, other := range []string{"key.pem", "notes", ".ssh/ca.pem", "all", "more"} {
				if strings.Contains(test.text, "/home/u/"+other) || strings.Contains(test.text, "~/"+other) {
					path = "/home/u/" + other
				}
			}
			if got := policy.NewIndex(&p).At(path).Has(policy.Read); got != test.want {
				t.Errorf("%s is readable: %t", path, got)
			}
		})
	}
}
