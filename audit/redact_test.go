package audit

import (
	"slices"
	"strings"
	"testing"
)

func TestRedact_RemovesWhatLooksLikeASecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2hunter2"
	for _, argv := range [][]string{
		{"app", "--password=" + secret},
		{"app", "--password", secret},
		{"app", "-password", secret},
		{"app", "--api-key", secret},
		{"app", "--api_key=" + secret},
		{"app", "--client-secret=" + secret},
		{"app", "--token", "--" + secret},
		{"gh", "auth", "login", "--with-token", secret},
		{"env", "GITHUB_TOKEN=" + secret, "make"},
		{"env", "AWS_SECRET_ACCESS_KEY=" + secret, "make"},
		{"sh", "-c", "export DB_PASSWORD='" + secret + "'; ./run"},
		{"sh", "-c", `DB_PASSWORD="` + secret + ` more" ./run`},
		{"sh", "-c", "deploy --token " + secret + " --now"},
		{"sh", "-c", "mysql --password=" + secret + " db"},
		{"curl", "-H", "Authorization: Bearer " + secret, "https://example.org"},
		{"curl", "-HAuthorization: Basic " + secret},
		{"curl", "-H", "X-Api-Key: " + secret},
		{"curl", "-H", "PRIVATE-TOKEN: " + secret},
		{"curl", "-H", "Cookie: session=" + secret},
		{"curl", "-H", "authorization:token " + secret},
		{"sh", "-c", `curl -H "Authorization: Bearer ` + secret + `" https://example.org`},
		{"curl", "https://user:" + secret + "@example.org/"},
		{"git", "clone", "https://" + secret + "@github.com/a/b"},
		{"psql", "postgresql://u:" + secret + "@db/x"},
		{"curl", "-u", "user:" + secret, "https://example.org"},
		{"curl", "--user", "user:" + secret},
		{"curl", "-uuser:" + secret},
		{"sh", "-c", "curl -u user:" + secret + " https://example.org"},
		{"curl", "-d", `{"password": "` + secret + `"}`},
		{"curl", "https://example.org/?access_token=" + secret + "&x=1"},
		{"mysql", "-p" + secret, "db"},
		{"sshpass", "-p", secret, "ssh", "host"},
		{"sshpass", "-p" + secret, "ssh", "host"},
		{"echo", "ghp_" + secret},
		{"echo", "sk-" + secret},
		{"echo", "xoxb-" + secret},
		{"app", "eyJ" + secret + ".eyJ" + secret + "." + secret},
		{"app", "-----BEGIN RSA PRIVATE KEY-----\n" + secret + "\n-----END RSA PRIVATE KEY-----"},
		{"sqlcmd", "Server=db;Pwd=" + secret + ";"},
		{"app", "/password:" + secret},
	} {
		got := Redact(argv)
		if strings.Contains(strings.Join(got, " "), "hunter2") {
			t.Errorf("%q: %q", argv, got)
		}
		if len(got) != len(argv) || got[0] != argv[0] {
			t.Errorf("%q has another form: %q", argv, got)
		}
	}
}

func TestRedact_KeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{
		{"go", "test", "-run", "TestToken", "./..."},
		{"git", "commit", "-m", "parser: keep the tokenizer's author"},
		{"git", "log", "--author=ann", "--oneline"},
		{"llm", "--max-tokens", "4096"},
		{"llm", "--max-tokens=4096"},
		{"env", "PWD=/home/ann/p", "OLDPWD=/home/ann", "make"},
		{"sh", "-c", `curl --token "$TOKEN" https://example.org/a@b`},
		{"ssh", "-p", "22", "ann@example.org"},
		{"scp", "ann@example.org:/tmp/x", "."},
		{"curl", "https://example.org/@scope/package"},
		{"npm", "install", "@scope/package@1.0.0"},
		{"mkdir", "-p", "a/b"},
		{"sort", "-u", "file"},
		{"docker", "run", "-u", "1000", "-p", "80:80", "image"},
		{"cat", "secrets.txt", "/etc/passwd"},
		{"grep", "-r", "password", "src"},
		{"rg", "Authorization", "src"},
		{"python3", "-c", "print('basic usage')"},
		{"app", "--key-file=/etc/key.pem"},
		{"make", "-j8", "CFLAGS=-O2"},
		{""},
		{},
	} {
		if got := Redact(argv); !slices.Equal(got, argv) {
			t.Errorf("%q became %q", argv, got)
		}
	}
}
