package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// What sessions read of the settings of curl, wget, hg and Maven has what they
// need, and no secret. "=" is all of it.
func TestPartsOf(t *testing.T) {
	t.Parallel()
	const settings = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">` + "\n"
	for name, test := range map[string]struct {
		format     risks.Format
		text, want string
		lines      []int
		line       int
	}{
		"curl, harmless": {
			risks.FormatCurl, "# mine\n--silent\nproxy = \"http://proxy.corp.example:3128\"\n-L\n" +
				"user-agent \"mine/1\"\n" +
				"cacert=/etc/ssl/corp.pem\nconnect-timeout 5\nlocation\n", "=", nil, 0,
		},
		"curl, secrets": {
			risks.FormatCurl, "user = me:hunter2\n-u me:hunter2\nheader = \"Authorization: Bearer hunter2\"\n" +
				"-sS\nfail\n" +
				"proxy = http://me:hunter2@proxy.example:1\noauth2-bearer=hunter2\ncookie hunter2\n" +
				"-H \"X: hunter2\"\n" +
				"cert = a:hunter2\ndata=hunter2\nurl = https://hunter2.example\n",
			"-sS\nfail\nproxy = http://proxy.example:1\n",
			[]int{1, 2, 3, 6, 7, 8, 9, 10, 11, 12},
			1,
		},
		"curl, switches together": {
			risks.FormatCurl, "-fsSL\n-m10\n-xhttp://proxy01server.corp:3128\nnoproxy = localhost,auth.corp.example\n" +
				"cacert = /etc/ssl/certs/corporate-root-certificate-authority.pem\n" +
				"pinnedpubkey = sha256//YhKJKSzoTt2b5FP18fvpHo7fJYqQCjAa3HWY3tvRMwE=\n", "=", nil, 0,
		},
		"curl, secrets behind others": {
			risks.FormatCurl, "fail -u me:hunter2\nuser-agent = \"bot/1 (key: hunter2)\"\n-uuser:hunter2\n" +
				"-sSuuser:hunter2\n" +
				"location\n", "location\n", []int{1, 2, 3, 4}, 1,
		},
		"curl, a proxy that is not understood": {risks.FormatCurl, "fail\n" +
			"proxy = \"http://proxy:3128\" # me:hunter2\n", "", nil, 2},
		"curl, options for later": {risks.FormatCurl, "silent\n" +
			"#user = \"me:hunter2\"\n", "silent\n", nil, 2},
		"curl, short ones for later": {risks.FormatCurl, "silent\n# -u me:hunter2\n", "silent\n", nil, 2},
		"curl, a header for later": {risks.FormatCurl, "silent\n" +
			"#header = \"X-Api-Key: hunter2\"\n", "silent\n", nil, 2},
		"wget, a header for later": {risks.FormatWget, "tries=3\n" +
			"#header = X-Api-Key: hunter2\n", "tries=3\n", nil, 2},
		"hg, a key for later": {risks.FormatMercurial, "[ui]\n# apikey = hunter2\n", "[ui]\n", nil, 2},
		"hg, commands": {
			risks.FormatMercurial, "[alias]\nup = !curl -u me:hunter2 -T $1 https://files.corp.example/\n" +
				"n = !API_KEY=hunter2 notify\n" +
				"l = log -l 9\n[hooks]\noutgoing = curl -s -F apikey=hunter2 https://ci.corp.example/build\n" +
				"pretxncommit.secrets = gitleaks detect\n[paths]\nd = https://hg.corp/x?u=me&p=hunter2\n",
			"[alias]\nl = log -l 9\n[hooks]\npretxncommit.secrets = gitleaks detect\n[paths]\n",
			[]int{2, 3, 6, 9},
			2,
		},
		"hg, what protects": {
			risks.FormatMercurial, "[phases]\nnew-commit = secret\npublish = False\n[hostsecurity]\n" +
				"auth.corp.example:fingerprints = sha256:c3:ab:8f\n" +
				"[ui]\nusername = Jane <jane@corp.example> (office: 12)\n[http_proxy]\n" +
				"host = proxyserver01.corp:3128\nno = auth.corp\n",
			"=", nil, 0,
		},
		"hg, a section with text behind it": {
			risks.FormatMercurial, "[ui]\nusername = Me\n[jira] ; tracker\npw = hunter2\nuser = me\n" +
				"  hunter2\n[ui]\n", "[ui]\nusername = Me\n[jira]\n[ui]\n",
			[]int{4, 5, 6},
			3,
		},
		"hg, a section that does not end": {risks.FormatMercurial, "[ui\nx=hunter2\n", "", nil, 1},
		"hg, another file": {risks.FormatMercurial, "%include ~/.hgrc.private\n[ui]\n" +
			"username = Me\n", "[ui]\nusername = Me\n", []int{1}, 1},
		"curl, a comment":     {risks.FormatCurl, "fail\n# password hunter2\n", "fail\n", nil, 2},
		"curl, a line's end":  {risks.FormatCurl, "fail\nuser-agent a\ruser me:hunter2\n", "", nil, 2},
		"curl, only a secret": {risks.FormatCurl, "user me:hunter2", "\n", []int{1}, 1},
		"curl, nothing":       {risks.FormatCurl, "", "=", nil, 0},
		"wget, harmless": {risks.FormatWget, "http_proxy = http://proxy:3128\n" +
			"check_certificate = on\nTries=3", "=", nil, 0},
		"wget, secrets": {risks.FormatWget, "timeout=5\nhttp_passwd = hunter2\n" +
			"header=Cookie: hunter2\nuser=hunter2\n", "timeout=5\n", []int{2, 3, 4}, 2},
		"wget, a proxy's user": {
			risks.FormatWget, "https_proxy = http://me:hunter2@proxy/\n", "https_proxy = http://proxy/\n", []int{1}, 1,
		},
		"hg, harmless": {
			risks.FormatMercurial, "; mine\n[ui]\nusername = Me <me@corp.example>\nmerge = vimdiff\n" +
				"[extensions]\nrebase =\n" +
				"[hostfingerprints]\nhg.corp.example = fc:e2:8d:d9:51:cd:cb:c1:4d:18:6b:b7:44:8d:49:72:57:e6:cd:33\n" +
				"[paths]\ndefault = ssh://hg@hg.corp.example/repo\n[alias]\nlg = log -G\n  --limit 9\n", "=", nil, 0,
		},
		"hg, secrets": {
			risks.FormatMercurial, "[ui]\nusername = Me\n[auth]\ncorp.prefix = hg.corp.example\n" +
				"corp.password = hunter2\n  and more\n" +
				"[paths]\ndefault = https://me:hunter2@hg.corp.example/\n[bugzilla]\npassword = hunter2\n" +
				"x = hunter2\n[smtp]\n" +
				"host=hunter2\n[http_proxy]\nhost = proxy:1\nuser = hunter2\n",
			"[ui]\nusername = Me\n[auth]\n[paths]\ndefault = https://hg.corp.example/\n[bugzilla]\n[smtp]\n" +
				"[http_proxy]\nhost = proxy:1\n",
			[]int{4, 5, 6, 8, 10, 11, 13, 16},
			4,
		},
		"hg, a secret in a later line": {risks.FormatMercurial, "[alias]\nx = !curl\n  -u me:hunter2@a\n", "", nil, 3},
		"hg, no section":               {risks.FormatMercurial, "username = hunter2\n", "\n", []int{1}, 1},
		"Maven, harmless": {
			risks.FormatMaven, settings + "<!-- mirrors of the company -->\n<mirrors><mirror><id>corp</id>" +
				"<url>https://nexus.corp.example/repository/maven-all/</url><mirrorOf>*</mirrorOf></mirror>" +
				"</mirrors></settings>\n", "=", nil, 0,
		},
		"Maven, secrets": {
			risks.FormatMaven, settings + "<servers><server><id>corp</id><password>hunter2</password></server>" +
				"</servers>\n" +
				"<!-- hunter2 --><proxies><proxy><host>proxy</host><username>hunter2</username>\n" +
				"<password>hunter2</password></proxy></proxies>" +
				"<profiles><profile><properties>\n" +
				"<nexus.token>hunter2</nexus.token><a>b</a></properties></profile></profiles></settings>\n",
			settings + "\n<proxies><proxy><host>proxy</host>\n" +
				"</proxy></proxies><profiles><profile><properties>\n" +
				"<a>b</a></properties></profile></profiles></settings>\n",
			[]int{3, 4, 5, 6},
			3,
		},
		"Maven, an address with a password": {
			risks.FormatMaven, settings + "<mirrors>\n" +
				"<url>https://me:hunter2@nexus.example/</url></mirrors></settings>", "", nil, 4,
		},
		"Maven, an entity": {risks.FormatMaven, "<!DOCTYPE s [<!ENTITY p \"hunter2\">]>\n" +
			"<settings>&p;</settings>", "", nil, 1},
		"Maven, another file":   {risks.FormatMaven, "<project><a/></project>", "", nil, 1},
		"Maven, no end":         {risks.FormatMaven, "<settings>\n<servers>", "", nil, 2},
		"Maven, two files":      {risks.FormatMaven, "<settings/>\n<servers>hunter2</servers>", "", nil, 2},
		"Maven, another coding": {risks.FormatMaven, `<?xml version="1.0" encoding="UTF-16"?><settings/>`, "", nil, 1},
		"Maven, a comment": {risks.FormatMaven, "<settings>\n" +
			"<!-- password: hunter2 --></settings>", "<settings>\n</settings>", nil, 2},
		"Maven, a profile that depends on what is left out": {
			risks.FormatMaven, "<settings><profiles><profile><properties><x.token>hunter2</x.token></properties>" +
				"<activation><property><name>x</name></property></activation></profile></profiles></settings>", "", nil, 1,
		},
		"Maven, a profile beside servers": {
			risks.FormatMaven, "<settings><servers/><profiles><profile><activation><property><name>!x</name>" +
				"</property></activation></profile></profiles></settings>",
			"<settings><profiles><profile><activation><property><name>!x</name>" +
				"</property></activation></profile></profiles></settings>",
			[]int{1},
			1,
		},
		"Maven, values of properties": {
			risks.FormatMaven, settings + "<profiles><profile><properties>\n" +
				"<a.url>jdbc:x://db/app?user=me&amp;password=hunter2</a.url>\n" +
				"<argLine>-Djavax.net.ssl.trustStorePassword=hunter2</argLine><sonar.login>hunter2</sonar.login>" +
				"<db.pw>hunter2</db.pw>\n<u>https://me:hunter2@h/</u><v>squ_0123456789abcdef0123456789abcdef01234567</v>" +
				"<w>plain</w></properties></profile></profiles></settings>",
			settings + "<profiles><profile><properties>\n\n\n<w>plain</w></properties></profile></profiles></settings>",
			[]int{4, 5, 6},
			4,
		},
		"Maven, a server elsewhere": {
			risks.FormatMaven, "<settings><server><password>hunter2</password></server><profiles><profile>" +
				"<servers>hunter2</servers><passphrase>hunter2</passphrase></profile></profiles></settings>",
			"<settings><profiles><profile></profile></profiles></settings>",
			[]int{1},
			1,
		},
		"Maven, long names": {
			risks.FormatMaven, `<?xml version="1.0" encoding="ISO-8859-1"?>` + "<settings><mirrors><mirror>" +
				"<id>corp-maven-releases-and-snapshots-mirror</id><url>https://artifactory01.corp.example/maven/</url>" +
				"</mirror></mirrors></settings>",
			"=", nil, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := test.want
			if want == "=" {
				want = ""
			}
			kept, lines, line := partsOf(test.format, test.text)
			if kept != want || !slices.Equal(lines, test.lines) || line != test.line {
				t.Errorf("%q without %v from line %d, want %q without %v from line %d", kept, lines, line, want,
					test.lines, test.line)
			}
			if strings.Contains(kept, "hunter2") {
				t.Error("a secret is left")
			}
			if again, _, line := partsOf(test.format, kept); kept != "" && (line != 0 || again != "") {
				t.Errorf("line %d of what is kept may hold a secret", line)
			}
		})
	}
}
