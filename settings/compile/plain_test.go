package compile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

func TestSecretLine(t *testing.T) {
	t.Parallel()
	for _, plain := range []string{
		"", "@corp:registry=https://registry.corp.example/", "@auth-team:registry = https://r.example",
		"registry=https://artifactory.corp.example/artifactory/api/npm/npm-local/\nalways-auth=true\n",
		"registry=https://artifactory01prod.corp.example:8443/npm/",
		"//registry.corp.example/:_authToken=${NPM_TOKEN}", "; a comment\n# another\n\nfund=false\r\n",
		"prefix=/home/u/.npm-global\ncafile=/etc/ssl/corp.pem\nsave-exact=true\nca[]=\"\"\nomit=dev\n" +
			"fetch-retries=5", "init-author-name=Me\ninit.author.email=me@corp.example\n[global]\n" +
			"keyring-provider = subprocess",
		"[global]\ncert = /etc/ssl/certs/ca.crt\nrequire-hashes = yes\n" +
			"progress_bar = off", "prefix=${HOME}/.npm", "yarnPath: .yarn/releases/yarn-4.1.0.cjs",
		"extra-index-url = https://a.corp.example/simple https://b.corp.example/simple", "email=me@corp.example",
		"npmScopes:\n  corp:\n    npmRegistryServer: \"https://r.corp.example\"\n    npmAuthToken: \"${NPM_TOKEN}\"\n",
		"[global]\nindex-url = https://pypi.corp.example/simple\nextra-index-url =\n    https://pypi.org/simple\n",
		"# registries of the company, by team\nregistry=https://npm.example/MyCompanyRegistry-2024/npm-remote-2/",
		"registry \"https://r.corp.example\"\n\"@corp:registry\" \"https://r.corp.example\"",
	} {
		if line := secretLine(plain); line != 0 {
			t.Errorf("%q: line %d", plain, line)
		}
	}
	for _, secret := range []string{
		"//r.example/:_authToken=x", "_auth=dTpw", "//r.example/:_password=\"cA==\"", "//r.example/:username=u",
		"_auth = ${A}b", "registry=https://u:p@r.example/", "registry=https://token@r.example:8080/",
		"[global]\nindex-url =\n    https://u:p@r.example/simple", "key=-----BEGIN", "other=npm_abcdef",
		"# //r.example/:_authToken=npm_abcdef", "; 0f3a1b2c3d4e5f60718293a4b5c6d7e8", "npmAuthToken: abc",
		"registry=https://dl.example/a1B2c3D4e5F6g7H8/npm/", "//dl.example/a1B2c3D4e5F6g7H8/:always-auth=true",
		"<xml>", "{\"_authToken\": \"x\"}", "key without \x01", "httpProxy: http://u:p@proxy:1", "\x00",
		"https-proxy=http://u:p@proxy.example", "mine=hunter2", "hunter2", "- hunter2", "index-url =\n  hunter2",
		"password =\n  /a", "registry=hunter2", "pin=1234567", "mine: \"hunter2\"", "mine hunter2",
		"#//r.example/:_password=aHVudGVyMg==", "; _auth = dTpzZWNy", "# password: hunter2", "_pwd=123456",
		"_pwd=hunter.two", "pass = /hunter two/Xy9", "# my npm password is hunter2", "; login bob:hunter2",
		"init-author-name=Me\r_password=hunter2", "loglevel=warn ; _auth=hunter2",
		"node-options=--env=PASSWORD=hunter2",
		"registry=https://dl.example/hGdTyWmKqLpRzXcV/npm/", "message=a\v_auth=b",
		"ca=\"hunter2\"", "ca[]=\"-----BEGIN PRIVATE KEY-----\\nMIIx\\n-----END PRIVATE KEY-----\"",
		"cert=hunter2", "cert=\"-----BEGIN", "client-cert = /a/b",
	} {
		if line := secretLine("fund=false\n" + secret); line == 0 {
			t.Errorf("%q: no line", secret)
		}
	}
}

// What sessions read of a file with secrets has each harmless line, and no secret.
func TestWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, want string
		lines      []int
	}{
		{
			"; mine\nregistry=https://r.example/\r\n//r.example/:_authToken=npm_abcdef\nfund=false",
			"registry=https://r.example/\nfund=false\n",
			[]int{3},
		},
		{"@corp:registry=https://u:p@r.example/npm/\n", "@corp:registry=https://r.example/npm/\n", []int{1}},
		{"registry=https://token@r.example:8080/", "registry=https://r.example:8080/\n", []int{1}},
		{"//registry.example/:_password=\"cA==\"\nfund=false", "fund=false\n", []int{1}},
		{"# token: npm_abcdef\nfund=false", "fund=false\n", nil},
		{
			"npmRegistries:\n  \"https://r.example\":\n    npmAuthToken: abc\n    npmAlwaysAuth: true\n",
			"npmRegistries:\n  \"https://r.example\":\n    npmAlwaysAuth: true\n",
			[]int{3},
		},
		{"npmAuthIdent:\n  hunter2\nfoo:\n  /bar", "", nil},
		{
			"[global]\nindex-url = https://u:p@a.example/simple\nextra-index-url =\n    https://t@b.example/simple\n" +
				"client-cert = /a/b\ntimeout = 60\n",
			"[global]\nindex-url = https://a.example/simple\nextra-index-url =\n    https://b.example/simple\n" +
				"timeout = 60\n",
			[]int{2, 4, 5},
		},
		{"password = hunter2\n  more\n  and/more\ntimeout = 60", "timeout = 60\n", []int{1, 2, 3}},
		{"token: hunter2\n- x/y\n- /z\nfund: false", "fund: false\n", []int{1, 2, 3}},
		// As Azure writes it, and editors of Windows.
		{
			"\ufeffregistry=https://pkgs.dev.azure.com/o/_packaging/f/npm/registry/\r\n; begin auth token\r\n" +
				"//pkgs.dev.azure.com/o/_packaging/f/npm/registry/:username=o\r\n" +
				"//pkgs.dev.azure.com/o/_packaging/f/npm/registry/:_password=\"aHVudGVyMg==\"\r\n" +
				"//pkgs.dev.azure.com/o/_packaging/f/npm/registry/:email=npm requires email to be set but doesn't use " +
				"the value\r\n; end auth token\r\nca[]=\"-----BEGIN CERTIFICATE-----\\nMIIB+/a=\\n" +
				"-----END CERTIFICATE-----\"\r\nca[]=\"\"\r\n",
			"\ufeffregistry=https://pkgs.dev.azure.com/o/_packaging/f/npm/registry/\n" +
				"ca[]=\"-----BEGIN CERTIFICATE-----\\nMIIB+/a=\\n-----END CERTIFICATE-----\"\nca[]=\"\"\n",
			[]int{3, 4, 5},
		},
		{"\ufeff_auth=hunter2\nfund=false", "fund=false\n", []int{1}},
		{"\ufeff; a comment\n//r.example/:_authToken=x\nfund=false", "fund=false\n", []int{2}},
		{"//r.example/:_password='it\nfund=false", "", nil},
		{"//r.example/:email=it's \\\nfund=false", "", nil},
		// A part of a value, and what says where packages come from.
		{"_password=\"a\n/b\"\nfund=false", "", nil},
		{"_auth=a\\\n/b\nfund=false", "", nil},
		{"_auth: |\n/b\nfund=false", "", nil},
		{"{\n_auth: a\n}", "", nil},
		{"<xml>", "", nil},
		{"@corp:registry=https://dl.example/a1B2c3D4e5F6g7H8/npm/\nfund=false", "", nil},
		{"extra-index-url =\n  https://dl.example/a1B2c3D4e5F6g7H8/\n", "", nil},
		{"token = a\n  index-url = https://a.example\n", "", nil},
		{"[a b]\nx=/y", "", nil},
		{"hunter2\nfund=false", "", nil},
		{"@corp:registry=https://dl.example/hGdTyWmKqLpRzXcV/npm/\nfund=false", "", nil},
		{"@corp:registry=https://dl.example/a1-Bc2dE_f3-G4hIj5/\nfund=false", "", nil},
		// Names that people give.
		{
			"@corp:registry=https://npm.example/MyCompanyRegistry-2024/npm-remote-2/\n//npm.example/:_authToken=x\n",
			"@corp:registry=https://npm.example/MyCompanyRegistry-2024/npm-remote-2/\n",
			[]int{2},
		},
		// What programs take for the end of a line.
		{"init-author-name=Me\r_password=hunter2\nfund=false\n_auth=x", "", nil},
		{"message=a\u2028_password=hunter2\n_auth=x", "", nil},
		{"loglevel=warn ; _auth=hunter2\nfund=false", "", nil},
		// A rule that is not understood is no secret, and the file means something
		// else without it.
		{"require-hashes = maybe\ntoken = a", "", nil},
		{"logFilters:\n  - code: YN0013\n    level: discard\nnpmAuthToken: x\n", "", nil},
		{"npmScopes:\n  corp:\n    npmAuthToken: x\nfund: false\n", "", nil},
	} {
		kept, lines := withoutSecrets(test.text)
		if kept != test.want || !slices.Equal(lines, test.lines) {
			t.Errorf("%q: %q without %v, want %q without %v", test.text, kept, lines, test.want, test.lines)
		}
		if line := secretLine(kept); line != 0 {
			t.Errorf("%q: line %d of what is kept may hold a secret", test.text, line)
		}
	}
}

// A file of registries that may hold a token is granted if it holds none. If it
// does, sessions read the rest, and it is said: without it, programs would ask the
// public registry.
func TestSettingsOfOthers(t *testing.T) {
	t.Parallel()
	const file = "/home/u/.npmrc"
	const node = `{"enabled": true}`
	const home = `{"enabled": true, "additional_read_only_paths": ["~"]}`
	for _, test := range []struct{ settings, text, want, told string }{
		{node, "@corp:registry=https://r.corp.example/", "read", ""},
		{node, "fund=false\n//r.corp.example/:_authToken=x", "copy fund=false\n", "in line 2: sessions read it"},
		{node, "_auth=x\n_password=x\nfund=true", "copy fund=true\n", "in lines 1, 2: sessions"},
		{
			strings.Replace(node, "}", `, "additional_read_only_paths": ["~/.npmrc"]}`, 1),
			"fund=false\n_auth=x", "read", "",
		},
		{
			strings.Replace(node, "}", `, "hidden_paths": ["~/.npmrc"]}`, 1),
			"fund=false\n_auth=x", "none", "",
		},
		{home, "fund=false\n_auth=x", "copy fund=false\n", "in line 2"},
		{node, strings.Repeat("#", maxSettingsFile+1), "none", "in line 1"},
		{node, "-> .npmrc", "none", ""},
		{home, "_auth=x", "none", "in line 1"},
		// npm outside would obey what a session writes there, so it is protected.
		{strings.Replace(home, "read_only", "read_write", 1), "fund=false", "read,execute", ""},
		{strings.Replace(home, "read_only", "read_write", 1), "fund=false\n_auth=x", "none", "in line 2"},
		{home, "@corp:registry=https://r.corp.example/", "read", ""},
	} {
		tree := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", file: test.text})
		c := snapshotOf(t, tree, test.settings, "").Compile(document.KindTool)
		got := c.Policy.At(file).String()
		if part, is := c.Policy.CopyAt(file); is && got == "none" {
			got = "copy " + part.Text
		}
		if got != test.want {
			t.Errorf("%s, %.80q: granted %s, want %s", test.settings, test.text, got, test.want)
		}
		var told string
		for _, d := range c.Diagnostics {
			told += d.Message + "\n"
		}
		if is := strings.Contains(told, "npm asks the public registry"); is != (test.told != "") ||
			!strings.Contains(told, test.told) {
			t.Errorf("%s, %.80q: told %q", test.settings, test.text, told)
		}
	}
}

// Each file of settings that may hold a secret is hidden wherever a wider grant
// would open it, and sessions read the rest of it. Only a grant of exactly that
// file opens it whole.
func TestMixed_InEveryGrant(t *testing.T) {
	t.Parallel()
	const on = `{"enabled": true, "additional_read_only_paths": [%q]}`
	texts := map[risks.Format][2]string{
		risks.FormatLines:     {"timeout = 60\n_password = hunter2\n", "timeout = 60\n"},
		risks.FormatCurl:      {"max-time = 60\nuser = me:hunter2\n", "max-time = 60\n"},
		risks.FormatWget:      {"timeout = 60\nhttp_password = hunter2\n", "timeout = 60\n"},
		risks.FormatMercurial: {"[ui]\nusername = Me\n[auth]\na.password = hunter2\n", "[ui]\nusername = Me\n[auth]\n"},
		risks.FormatMaven: {
			"<settings><servers><server>hunter2</server></servers></settings>\n",
			"<settings></settings>\n",
		},
		risks.FormatSigns: {"url = https://me:hunter2@r.example\n", "url = https://r.example\n"},
	}
	places := 0
	for _, place := range risks.All() {
		if place.Mixed == "" {
			continue
		}
		places++
		path := strings.Replace(place.Path, "~", "/home/u", 1)
		secret, plain := texts[place.Format][0], texts[place.Format][1]
		top := "~"
		if !strings.HasPrefix(place.Path, "~") {
			top = "/" + strings.SplitN(path, "/", 3)[1]
		}
		for _, test := range []struct{ granted, text, link, want string }{
			{top, secret, "", "copy"},
			{filepath.Dir(place.Path), secret, "", "copy"},
			{place.Path, secret, "", "read"},
			{top, secret, "/home/u/dotfiles/settings", "copy"},
			{filepath.Dir(place.Path), secret, filepath.Dir(path) + "/settings", "copy"},
			{"/home/u/dotfiles", secret, "/home/u/dotfiles/settings", "copy"},
			{"/home/u/dotfiles/settings", secret, "/home/u/dotfiles/settings", "read"},
			{top, plain, "", "read"},
			{filepath.Dir(place.Path), plain, "", "read"},
			{top, "something else\r_password = hunter2\nx = --x", "", "none"},
		} {
			if test.link != "" && !strings.HasPrefix(place.Path, "~") && strings.HasPrefix(test.granted, "/") &&
				!strings.HasPrefix(test.link, test.granted) {
				continue // what it leads to is not granted
			}
			entries, at := map[string]string{"/home/u/project/": "", "/home/u/dotfiles/": "", path: test.text}, path
			if test.link != "" {
				entries[path], entries[test.link], at = "-> "+test.link, test.text, test.link
			}
			tree := resolvetest.Tree(t, entries)
			c := snapshotOf(t, tree, fmt.Sprintf(on, test.granted), "").Compile(document.KindTool)
			_, hidden := c.Policy.HiddenAt(at)
			part, is := c.Policy.CopyAt(at)
			got := "none"
			switch {
			case is && part.Text == plain && hidden:
				got = "copy"
			case !is && !hidden && c.Policy.At(at).Has(policy.Read):
				got = "read"
			}
			if got != test.want {
				t.Errorf("%s, grant of %s, link to %q, %q: %s, want %s", place.Path, test.granted, test.link,
					test.text, got, test.want)
			}
			warned := strings.Contains(said(c, at), place.Mixed)
			if want := test.want == "copy" || test.want == "none"; warned != want {
				t.Errorf("%s, grant of %s, %q: warned %t", place.Path, test.granted, test.text, warned)
			}
		}
	}
	if places < 40 {
		t.Errorf("%d places", places)
	}
}

// An organisation that does not allow a file allows no part of it.
func TestRequired_BoundsWhatIsReadOfAFile(t *testing.T) {
	t.Parallel()
	const file = "/home/u/.npmrc"
	tree := resolvetest.Tree(t, map[string]string{"/home/u/project/": "", file: "fund=false\n_auth=x"})
	for required, want := range map[string]bool{
		`{}`:                                 true,
		`{"hidden_paths": ["~"]}`:            false,
		`{"hidden_paths": ["` + file + `"]}`: false,
		`{"additional_read_only_paths": []}`: false,
		`{"toolchains": ["go"]}`:             true,
	} {
		s := managedSnapshot(t, tree, "{}", required, `{"enabled": true}`, "")
		policy := s.Compile(document.KindTool).Policy
		if _, is := policy.CopyAt(file); is != want {
			t.Errorf("%s: a part is read: %t, want %t", required, is, want)
		}
	}
}
