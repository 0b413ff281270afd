package formats

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// numbered makes placeholders that tests can read.
func numbered() Maker {
	made := map[string]string{}
	return func(s Secret) (string, error) {
		if len(s.Value) < 8 {
			return "", errors.New("too short")
		}
		length := len(s.Value)
		if s.InURL > 0 {
			length = s.InURL
		}
		key := fmt.Sprint(s.Value, s.InURL)
		if made[key] == "" {
			made[key] = strings.Repeat(fmt.Sprint("P", len(made)+1), length)[:length]
		}
		return made[key], nil
	}
}

func TestHide(t *testing.T) {
	t.Parallel()
	const token, other = "npm_s3cretS3cretS3cretS3cretS3cret", "hunter2hunter2"
	basic := base64.StdEncoding.EncodeToString
	for _, c := range []struct{ file, text, want, secrets string }{
		{
			"~/.npmrc", "; old: npm_0therS3cret\nregistry = https://npm.example.com/\n" +
				"//npm.example.com/:_authToken=" + token + "\nsave-exact=true\n//e.com/:_authToken=${NPM_TOKEN}\n",
			"registry=https://npm.example.com/\n//npm.example.com/:_authToken=P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1\n" +
				"save-exact=true\n//e.com/:_authToken=${NPM_TOKEN}\n",
			"//npm.example.com/:_authToken npm.example.com " + token,
		},
		{
			"/home/u/.npmrc", "_auth=\"" + basic([]byte("me:"+other)) + "\"\n",
			"_auth=\"" + basic([]byte("me:P1P1P1P1P1P1P1")) + "\"\n", "_auth  " + other,
		},
		{
			"~/.config/pip/pip.conf", "[global]\nindex-url = https://me:" + other + "@pip.example.com/simple\n" +
				"timeout: 10\nextra-index-url =\n\thttps://a.example/x\n\thttps://me:p%40ssw%2Frd@b.example:8443/x\n",
			"[global]\nindex-url = https://me:P1P1P1P1P1P1P1@pip.example.com/simple\ntimeout = 10\n" +
				"extra-index-url = \n    https://a.example/x\n    https://me:P2P2P2P2P2P2@b.example:8443/x\n",
			"global.index-url pip.example.com hunter2hunter2; global.extra-index-url b.example:8443 p@ssw/rd",
		},
		{
			"~/.aws/credentials", "[default]\naws_access_key_id = AKIAABCDEFGHIJKLMNOP\n" +
				"aws_secret_access_key = " + other + "\nregion = eu-west-1\n",
			"[default]\naws_access_key_id = P1P1P1P1P1P1P1P1P1P1\naws_secret_access_key = P2P2P2P2P2P2P2\n" +
				"region = eu-west-1\n",
			"default.aws_access_key_id  AKIAABCDEFGHIJKLMNOP; default.aws_secret_access_key  " + other,
		},
		{
			"~/.pypirc", "[distutils]\nindex-servers =\n    pypi\n[pypi]\nusername = __token__\npassword = pypi-" + other,
			"[distutils]\nindex-servers = \n    pypi\n[pypi]\nusername = __token__\npassword = P1P1P1P1P1P1P1P1P1P\n",
			"pypi.password  pypi-" + other,
		},
		{
			"~/.netrc", "# mine\nmachine api.example.com login me\n  password " + other + " account x\n" +
				"default login anonymous password anonymous@\n",
			"machine api.example.com\n  login me\n  password P1P1P1P1P1P1P1\n  account x\ndefault\n  login anonymous\n" +
				"  password P2P2P2P2P2\n",
			"api.example.com.password api.example.com " + other + "; default.password default anonymous@",
		},
		{
			"~/.git-credentials", "https://me:" + token + "@Git.example.com\nhttps://" + token + "@x.example/p\n",
			"https://me:P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1@Git.example.com\n" +
				"https://P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1P1@x.example/p\n",
			"line 1 git.example.com " + token + "; line 2 x.example " + token,
		},
		{
			"~/.docker/config.json", `{"auths": {"https://ghcr.io/v2/": {"auth": "` + basic([]byte("me:"+other)) +
				`"}, "reg.example:5000": {"identitytoken": "` + token + `"}}, "credsStore": "desktop"}`,
			`{"auths":{"https://ghcr.io/v2/":{"auth":"` + basic([]byte("me:P1P1P1P1P1P1P1")) +
				`"},"reg.example:5000":{"identitytoken":"P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2"}},"credsStore":"desktop"}`,
			"auths.https://ghcr.io/v2/.auth ghcr.io " + other +
				"; auths.reg.example:5000.identitytoken reg.example:5000 " + token,
		},
		{
			"~/.config/gh/hosts.yml", "github.com: # mine\n    oauth_token: gho_" + other + "\n    user: me\n" +
				"    git_protocol: https\n    users:\n        me:\n            oauth_token: gho_" + other + "\n",
			"github.com:\n    git_protocol: https\n    oauth_token: P1P1P1P1P1P1P1P1P1\n    user: me\n    users:\n" +
				"        me:\n            oauth_token: P1P1P1P1P1P1P1P1P1\n",
			"github.com.oauth_token github.com gho_" + other +
				"; github.com.users.me.oauth_token github.com gho_" + other,
		},
		{
			"~/.cargo/credentials.toml", "[registry]\ntoken = \"\\u0063io" + other + "\" # x\n",
			"[registry]\ntoken = 'P1P1P1P1P1P1P1P1P'\n", "registry.token  cio" + other,
		},
		{
			"~/.claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"sk-ant-oat01-` + other +
				`","refreshToken":"sk-ant-ort01-` + other + `","expiresAt":1767225600000,"scopes":["user:inference"],` +
				`"subscriptionType":"max"}}`,
			`{"claudeAiOauth":{"accessToken":"P1P1P1P1P1P1P1P1P1P1P1P1P1P","expiresAt":1767225600000,` +
				`"refreshToken":"P2P2P2P2P2P2P2P2P2P2P2P2P2P","scopes":["user:inference"],"subscriptionType":"max"}}`,
			"claudeAiOauth.accessToken  sk-ant-oat01-" + other + "; claudeAiOauth.refreshToken  sk-ant-ort01-" + other,
		},
		{
			"~/.codex/auth.json", `{"OPENAI_API_KEY":null,"tokens":{"access_token":"` + other + `","account_id":` +
				`"0a0a0a0a-1b1b-2c2c-3d3d-4e4e4e4e4e4e"},"last_refresh":"2026-01-01T00:00:00Z","unheard":"` + token + `"}`,
			`{"OPENAI_API_KEY":null,"last_refresh":"2026-01-01T00:00:00Z","tokens":{"access_token":"P1P1P1P1P1P1P1",` +
				`"account_id":"0a0a0a0a-1b1b-2c2c-3d3d-4e4e4e4e4e4e"},"unheard":"P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2P2"}`,
			"tokens.access_token  " + other + "; unheard  " + token,
		},
	} {
		text, found, err := Hide(KindOf(c.file), []byte(c.text), numbered())
		got := string(text)
		if strings.HasSuffix(c.file, ".json") {
			got = strings.NewReplacer("\n", "", "  ", "", `": `, `":`).Replace(got)
		}
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.file, err, got, c.want)
		}
		var names []string
		for _, s := range found {
			names = append(names, s.Name+" "+s.Host+" "+s.Value)
		}
		if got := strings.Join(names, "; "); got != c.secrets {
			t.Errorf("%s: secrets\n%s\nwant\n%s", c.file, got, c.secrets)
		}
	}
}

// What cannot be read, or would show a secret, is not shown at all; and the error
// quotes no secret.
func TestHide_Refuses(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	for _, c := range []struct{ file, text string }{
		{"~/.ssh/config", "Host *"}, // no known format
		{"~/.npmrc", "_authToken=" + secret + " # " + secret + "x"},
		{"~/.npmrc", "_authToken=" + secret + ";old"},
		{"~/.npmrc", `_authToken="` + secret + `\u0041"`},
		{"~/.npmrc", "just " + secret},
		{"~/.npmrc", "_auth=" + secret},
		{"~/.npmrc", "_authToken=short"},
		{"~/.npmrc", "_authToken=" + secret + "\nscope=" + secret},
		{"~/.npmrc", "_authToken=" + secret + "\x00"},
		{"~/.npmrc", "_authToken=" + secret + "\u2028x=y"},
		{"~/.npmrc", strings.Repeat("#", MaxBytes+1)},
		{"~/.netrc", "machine h login me password " + secret + "\nmacdef init\n  cd " + secret},
		{"~/.netrc", `machine h login me password "` + secret + `"`},
		{"~/.netrc", "machine h login me password"},
		{"~/.netrc", "password " + secret},
		{"~/.pypirc", "password = " + secret},
		{"~/.pypirc", "[a]\npassword = " + secret + "\\\n"},
		{"~/.aws/credentials", "[" + "A1b2C3d4E5f6A1b2C3d4E5f6" + "]\nx = y"},
		{"~/.git-credentials", secret},
		{"~/.git-credentials", "https://me:%zz" + secret + "@h"},
		{"~/.git-credentials", "https://h/me:" + secret + "@x"},
		{"~/.docker/config.json", `{"auths":{"h":{"auth":"` + secret + `"}}}`},
		{"~/.docker/config.json", `{"auths":{"https://me:` + secret + `@h":{}}}`},
		{"~/.docker/config.json", `{"auths":{"h":{"password":12345678}}}`},
		{"~/.docker/config.json", `{} {"x":1}`},
		{"~/.docker/config.json", `[]`},
		{"~/.docker/config.json", `null`},
		{"~/.docker/config.json", `{"a`},
		{"~/.config/gh/hosts.yml", "a: 1\n---\ntoken: " + secret},
		{"~/.config/gh/hosts.yml", "a:\n  1: x\n  true: y\ntoken: " + secret + "\n? [a]\n: b"},
		{"~/.config/gh/hosts.yml", "token: 12345678"},
		{"~/.config/gh/hosts.yml", "token: !!binary aHVudGVyMg=="},
		{"~/.cargo/credentials.toml", "token = " + secret},
		{"~/.cargo/credentials.toml", "token = 12345678"},
	} {
		text, found, err := Hide(KindOf(c.file), []byte(c.text), numbered())
		if err == nil || text != nil || found != nil {
			t.Errorf("%s: %.60q is shown as %q", c.file, c.text, text)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %.60q: the error quotes it: %v", c.file, c.text, err)
		}
	}
}

// Whatever a file is: no secret is left in what is shown, and each is read as its
// placeholder.
func FuzzHide(f *testing.F) {
	for _, text := range []string{
		"//h/:_authToken=hunter2hunter2", "[a]\npassword = hunter2hunter2\n b",
		"machine h login l password hunter2hunter2", "https://me:hunter2hunter2@h/p",
		`{"auths":{"h":{"auth":"bWU6aHVudGVyMmh1bnRlcjI="}}}`, "h.x:\n  token: hunter2hunter2",
		"[r]\ntoken = \"hunter2hunter2\"", `{"a":{"token":"hunter2hunter2","token":"hunter3hunter3"}}`,
	} {
		for i := range kinds {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		if i < 0 || i >= len(kinds) {
			return
		}
		shown, found, err := Hide(kinds[i].kind, []byte(text), numbered())
		if err != nil {
			return
		}
		for _, s := range found {
			if strings.Contains(string(shown), s.Value) {
				t.Errorf("%s: %q is shown as %q", kinds[i].kind, text, shown)
			}
		}
	})
}
