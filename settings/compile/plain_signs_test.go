package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// Usual settings of programs that hold no secret are read as they are.
func TestSignsParts_AreNotInUsualSettings(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"uv": "# our mirror\nkeyring-provider = \"subprocess\"\nnative-tls = true\n[[index]]\nname = \"corp\"\n" +
			"url = \"https://pypi01.corp.example:8443/simple/\"\nauthenticate = \"always\"\n[pip]\ngenerate-hashes = true\n",
		"nix": "experimental-features = nix-command flakes\nsubstituters = https://cache.nixos.org\n" + //nolint:misspell // its name
			"trusted-public-keys = cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=\nnetrc-file = /etc/nix/netrc\n" +
			"secret-key-files = /etc/nix/key\ntrusted-users = root @wheel\n!include access-tokens.conf\n",
		"go": "GOPROXY=https://proxy.corp.example/go,https://proxy.golang.org,direct\nGOPRIVATE=*.corp.example\n" +
			"GOAUTH=netrc\nGOFLAGS=-mod=mod\nGOSUMDB=sum.golang.org\n",
		"Helm": "apiVersion: \"\"\ngenerated: \"0001-01-01T00:00:00Z\"\nrepositories:\n- caFile: \"\"\n  certFile: \"\"\n" +
			"  insecure_skip_tls_verify: false\n  keyFile: \"\"\n  name: bitnami\n  pass_credentials_all: false\n" +
			"  password: \"\"\n  url: https://charts.bitnami.com/bitnami\n  username: \"\"\n",
		"Composer": "{\n  \"config\": {\n    \"github-oauth\": {},\n    \"http-basic\": {},\n    \"store-auths\": \"prompt\"\n" +
			"  },\n  \"repositories\": [{\"type\": \"composer\", \"url\": \"https://packages.corp.example\"}]\n}\n",
		"Poetry": "[virtualenvs]\nin-project = true\n[repositories.corp]\nurl = \"https://pypi.corp.example/simple\"\n",
		"PDM":    "[pypi]\nurl = \"https://pypi.corp.example/simple\"\n[repository.pypi]\nusername = \"${PDM_USER}\"\n",
		"conda": "channels:\n  - conda-forge\n  - https://conda.corp.example/main\nadd_anaconda_token: true\n" +
			"proxy_servers:\n  http: http://proxy.corp.example:3128\nssl_verify: /etc/ssl/corp.pem\n",
		"gem": "---\n:sources:\n- https://gems.corp.example/\ngem: --no-document\n:update_sources: true\n",
		"Bundler": "---\nBUNDLE_PATH: \"vendor/bundle\"\nBUNDLE_WITHOUT: \"development:test\"\nBUNDLE_JOBS: \"4\"\n" +
			"BUNDLE_LOCAL__RACK: \"~/src/rack\"\nBUNDLE_BUILD__PG: \"--with-pg-config=/usr/bin/pg_config\"\n" +
			"BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: \"https://gems.corp.example/\"\n",
		"Bun": "[install.scopes]\n\"@corp\" = { token = \"$npm_token\", url = \"https://npm.corp.example/\" }\n" +
			"other = { token = \"${NPM_TOKEN}\", url = \"https://r.example/\" }\ntelemetry = false\n",
		"addresses": "a = ssh://git@github.com/corp/x\nb = git+ssh://git@git.corp.example/x\n" +
			"c = https://${USER}:${TOKEN}@r.example\n" +
			"e = https://r.example:8443/@corp/x\nd = git@github.com:corp/x.git\n" +
			"mail = me@corp.example\ntoken_url = https://auth.corp.example/token\n",
		"gem authors": "---\nBUNDLE_GEM__TEST: \"rspec\"\nBUNDLE_GEM__MIT: \"true\"\nBUNDLE_GEM__CI: \"github\"\n" +
			"BUNDLE_PATH__SYSTEM: \"true\"\nBUNDLE_LOCAL__OAUTH2: \"~/src/oauth2\"\n",
		"Gradle": "org.gradle.jvmargs=-Xmx4g \\\n  -Dfile.encoding=UTF-8\norg.gradle.caching=true\n" +
			"signing.keyId=24875D73\nsigning.secretKeyRingFile=/home/me/.gnupg/secring.gpg\n" +
			"systemProp.http.proxyHost=proxy.corp.example\nsystemProp.http.proxyPassword=\n",
		"comments": "# https://discourse.nixos.org/t/how-to-use-flakes/12345\n# see RFC 6749, section 4\n",
		"pins": "constraint-dependencies = [\"tokenizers==0.15\"]\n- tokenizers=0.15\nx = { tokenizers = \"2025-01-01\" }\n" +
			"y = \"npm:foo@1.2.3\"\nz = glibc-locales-utf8-and-more-things\n# mailto:me@corp.example\n",
		"plug-ins": "GOAUTH=git /home/me/src\nGOAUTH=/usr/bin/helper\n    auth: anaconda-auth\ntoken_ttl=3600\n" +
			"store = s3://cache?profile=x\nnix-path = nixpkgs=https://github.com/NixOS/nixpkgs/archive/" +
			"0123456789abcdef0123456789abcdef01234567.tar.gz\nPWD=/x\naccess-tokens =\n",
		"users": "builders = ssh-ng://nix@mac.example\nx = sftp://me@h.example\ny = git+https://git@github.com/corp/x\n" +
			"z = https://VssSessionToken@pkgs.dev.azure.com/corp/_packaging/x/pypi/simple/\n" +
			"a = https://r.example?mail=me@corp.example\nb = [http://a.example,b@c]\nc = https://oauth2accesstoken@x.pkg.dev/y\n",
		"empty": "", "a byte order mark": "\ufeffurl = \"https://r.example\"\n", "CRLF": "url = \"x\"\r\n",
	} {
		if kept, lines, line := signsParts(text); line != 0 || kept != "" || lines != nil {
			t.Errorf("%s: line %d: %s", name, line, slices.Collect(strings.Lines(text))[max(0, line-1)])
		}
	}
}

// A name or an address may be written with escapes. Without a secret they close
// nothing.
func TestSignsParts_SeeThroughEscapes(t *testing.T) {
	t.Parallel()
	const around = "name = \"corp\"\n"
	for _, secret := range []string{
		`"p\u0061ssword": "hunter2"`, `"\u0074oken" = "hunter2"`, `"pass\x77ord": "hunter2"`,
		`"\U00000070assword" = "hunter2"`, `p\uuu0061ssword=hunter2`,
		`"url": "https:\/\/me:hunter2\u0040r.example\/simple"`,
		`"x": "gh\u0070_0123456789abcdef"`,
	} {
		if kept, _, line := signsParts(around + secret + "\n"); line != 2 || strings.Contains(kept, "hunter2") {
			t.Errorf("%s: line %d, kept %q", secret, line, kept)
		}
	}
	for _, plain := range []string{
		`"name": "Andr\u00e9"`, `"url": "https:\/\/r.example\/a\u0026b"`, `home=C\:\\users\\x`,
		`"x": "\ud83d\ude00"`,
	} {
		if _, _, line := signsParts(around + plain + "\n"); line != 0 {
			t.Errorf("control: %s: line %d", plain, line)
		}
	}
}

// Every sign of a secret closes a file. The control is the file without it.
func TestSignsParts_FindSecrets(t *testing.T) {
	t.Parallel()
	const around = "name = \"corp\"\n"
	for _, secret := range []string{
		`url = "https://me:hunter2@r.example/simple"` + "\npassword = hunter2", `password = "hunter2"`,
		`password: hunter2`,
		`"password": "hunter2"`, `  password: "hunter2" # mine`, `password: no way hunter2`,
		`password = true-hunter2`,
		`{"github-oauth": {"github.com": "hunter2"}}`, `"http-basic": {`, `"bearer": {`, `token:`,
		`token = [`,
		`access-tokens = github.com=hunter2`, `_auth = hunter2`, `auth: hunter2`, `corp = { token = "hunter2" }`,
		`corp = { url = "https://r.example", token = "hunter2" }`, `corp = { token = "", password = "hunter2" }`,
		`corp = { "token": "${T}", "password": "hunter2" }`, `token = "${T}hunter2"`, `token = "$hunter2"`,
		`[pypi-token]`, `[http-basic.corp]`, `:rubygems_api_key: hunter2`, `BUNDLE_GEMS__CORP__EXAMPLE: "hunter2"`,
		`BUNDLE_INTRANET: "me:hunter2"`, `channel_alias: https://conda.corp.example/t/hunter2-x/main`,
		`url = https://r.example/?x-auth=hunter2`, `url = https://r.example/a?a=b&private_token=hunter2`,
		`proxy = "me:hunter2@proxy.example:3128"`, `# password = hunter2`, `; token: hunter2`,
		`// "token": "hunter2"`,
		`x = ghp_0123456789`, `x = "glpat-0123456789abcdef"`, `x = npm_0123456789abcdefghij`,
		`x = sk-0123456789abcdef`,
		`x = sk_live_1`, `x = xoxb-1`, `x = AKIA0123456789AB`, `x = ASIA0123456789AB`, `x = eyJhbGciOiJI`,
		`x = pypi-AgEIcHlwaS5vcmcAAA`, `x = dckr_pat_1`, `-----BEGIN RSA PRIVATE KEY-----`,
		`-----BEGIN PRIVATE KEY-----`,
		`sonatypePassword=hunter2`, `signing.password=hunter2`, `corp.apiKey=hunter2`, `aws.secretAccessKey=hunter2`,
		`"url": "https:\/\/me:hunter2@r.example"`, `url = https://me:hunt/er2@r.example`, "pass\\\nword = hunter2",
		`BUNDLE_HTTPS://RUBYGEMS__PKG__GITHUB__COM/CORP/: "me:hunter2"`, `BUNDLE_LOCALHOST:9292: "me:hunter2"`,
		`BUNDLE_HTTPS://RUBYGEMS__PKG__GITHUB__COM/CORP/: "hunter2"`, `BUNDLE_LOCAL__GEMS__CORP: "me:hunter2"`,
		`BUNDLE_INTRANET: "me:hunt/er2"`, `"header": ["Authorization: Basic bWU6aHVudGVyMg=="]`,
		`"header": ["X-Auth-Key: hunter2"]`, `"header": ["Cookie: session=hunter2"]`, `x = Bearer hunter2`,
		`signingInMemoryKey=lQdGBF4jAAAAAAA1`, `gpr.key=0123456789abcdef0123456789abcdef01234567`,
		`artifactory_key=AKCp0123456789abcdef`, `NEXUS_KEY=0123456789abcdef`, `storePass=hunter2`,
		`keystore.pass=hunter2`,
		`NEXUS_PASS=hunter2`, `my_pass = hunter2`, `pw = hunter2`, `GITHUB_PAT=hunter2`, `azurePat=hunter2`,
		`nexusCreds=me:hunter2`, `authKey=hunter2`, `nexusAuthHeader=hunter2`, `jwt=hunter2`,
		`sonatypePassword hunter2`,
		"sonatypePassword\thunter2", `repo.url=https\://hunter2@r.example`, `repo.url=https\://me\:hunter2@r.example`,
		`url = https://dl.cloudsmith.io/AbCdEf0123456789/corp/repo/`, `url = https://packagecloud.io/priv/hunter/x`,
		`url = https://pypi.fury.io/1a2B3c4D5e6F7g8H/me/`, `x = https://hooks.slack.com/services/T0/B0/X`,
		`url = https://conda.example/t/TKN.abc-def/x`, `url = https://me:p@ss/hunter2@r.example`,
		`url = https://:hunt/er2@r.example`, `url = https://me:12/34@r.example`, `url = https://me:a,b@r.example`,
		`password = "$ECRETPASS1"`, `password = $HUNTER2`, `SECRET_URL=hunter2`, `NEXUS_TOKEN_SERVER=hunter2`,
		`tokenProvider=hunter2`, `urlPassword=~hunter2`, `password=7#kJ2`, `password=0,x`, `push: --key hunter2`,
		`x = ATBB0123abcd`, `x = ATATT3xFfGF0`, `x = hvs.CAESIJ12`, `x = cmVmdGtu0`,
		`url = https://r.example?code=hunter2`,
		`url = https://r.example/?X-Amz-Signature=hunter2`, "jvmargs=-Da=b \\\n  -Dpassword=hunter2",
		`passphrase = hunter2`, `pwd = hunter2`, `credential: hunter2`, `oauth: hunter2`, `"custom-headers": {`,
		`"client-certificate": {`, `access-key=hunter2`, `private_key=hunter2`,
		`"consumer-key": "hunter2"`, `login=hunter2`,
		`x = github_pat_1`, `x = AIza0123456789abcdefghij`, `x = hf_0123456789abcdef`, `x = dop_v1_1`,
		`x = SG.0123456789abcdef`, `x = rubygems_0123456789abcdef`, `x = squ_0123456789abcdef`,
		`# x = AKC0123456789abcdefghij`,
		strings.Repeat("a", longestLine+1),
		"a\x00b", "a\u2028password", "a\rpassword=hunter2",
	} {
		for text, want := range map[string]int{
			secret + "\n": 1, around + secret: 2, around + around + secret + "\n" + around: 3,
		} {
			kept, _, line := signsParts(text)
			if kept != "" || line < want {
				t.Errorf("%q: line %d, and %q is kept", text, line, kept)
			}
		}
	}
	if _, _, line := signsParts(around); line != 0 {
		t.Errorf("the control: line %d", line)
	}
}

// Addresses are read without what signs in there, and nothing else is changed.
func TestSignsParts_KeepAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# a\nindex = \"https://me:hunter2@r.example/simple\"\nb = 1\n": "# a\nindex = \"https://r.example/simple\"\nb = 1\n",
		"GOPROXY=https://hunter2@r.example,https://me:hunter2@s.example,direct": "GOPROXY=https://r.example," +
			"https://s.example,direct",
		"a: [ssh://git@g.example/x, 'https://hunter2:@r.example']\r\n":    "a: [ssh://git@g.example/x, 'https://r.example']\r\n",
		"a = https://me:hunter2@r.example # https://me:hunter2@s.example": "a = https://r.example # https://s.example",
		"https://me:${P}hunter2@r.example/t/${T}":                         "https://r.example/t/${T}",
		"a = ssh-ng://nix@x https://oauth2:hunter2@r.example":             "a = ssh-ng://nix@x https://r.example",
	} {
		kept, lines, line := partsOf(risks.FormatSigns, text)
		if kept != want || len(lines) != 1 || line != lines[0] {
			t.Errorf("%q: %q without %v", text, kept, lines)
		}
		if again, _, line := signsParts(kept); line != 0 || again != "" {
			t.Errorf("line %d of %q may hold a secret", line, kept)
		}
	}
}

// A long line would make the search slow, and what goes on is not understood without
// the rest.
func TestSignsParts_NeedWholeLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		strings.Repeat("a", longestLine-1) + "\n": 0, strings.Repeat("a", longestLine) + "\n": 1,
		"x = 1\n" + strings.Repeat("token:0,", longestLine/8) + "\n":                       2,
		strings.Repeat("a", longestLine/2) + "\\\n" + strings.Repeat("a", longestLine/2+1): 2,
		"x = \\": 1, "x = \\\n": 1, "x = \\\ny": 0,
	} {
		if kept, _, line := signsParts(text); line != want || kept != "" {
			t.Errorf("%.20q, %d bytes: line %d, want %d", text, len(text), line, want)
		}
	}
}
