package sensitive

import (
	"fmt"
	"strings"
	"testing"
)

func TestSecretsIn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`export GITHUB_TOKEN=ghp_16C7e42F292c6912E7`:        "GITHUB_TOKEN 8",
		`  OPENAI_API_KEY="sk-abcdefghijklmnopqrst"`:        "OPENAI_API_KEY 3",
		`export A=1 DB_PASSWORD='hunter22' B=2`:             "DB_PASSWORD 12",
		`set -gx NPM_TOKEN npm-123456`:                      "NPM_TOKEN 9",
		`setenv AWS_SECRET_ACCESS_KEY wJalrXUtnFEMI`:        "AWS_SECRET_ACCESS_KEY 8",
		`$env.HF_TOKEN = "hf_abcdefghijklmnopqrstuvwx"`:     "HF_TOKEN 6",
		`export URL=https://ada:lovelace@example.org/x`:     "URL 8",
		`export DATABASE_URL="postgres://:pw123@localhost"`: "DATABASE_URL 8",
		`true && export CI_JOB_TOKEN=abcdef123; echo x`:     "CI_JOB_TOKEN 16",
		`export X=AKIAIOSFODNN7EXAMPLE`:                     "X 8",
		`export P='pa$$word'`:                               "",
		`export MY_PASSWD='pa$$word'`:                       "MY_PASSWD 8",
		`# export GITHUB_TOKEN=ghp_16C7e42F292c6912E7`:      "",
		`export GITHUB_TOKEN=$(pass show github)`:           "",
		"export GITHUB_TOKEN=`pass show github`":            "",
		`export GITHUB_TOKEN="$OTHER"`:                      "",
		`export GITHUB_TOKEN_FILE=/run/secrets/token`:       "",
		`export SSH_KEY_PATH=~/.ssh/id`:                     "",
		`export API_KEY=`:                                   "",
		`export SECRET=1`:                                   "",
		`export TOKENIZERS_PARALLELISM=false`:               "",
		`export PASSWORD_STORE_DIR=~/.store`:                "",
		`export EDITOR=vim PATH=$PATH:/x`:                   "",
		`alias token='echo hello world'`:                    "",
	} {
		var got []string
		for _, s := range assignmentsIn(line + "\n") {
			got = append(got, fmt.Sprintf("%s %d", s.Name, s.At.Column))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: found %q, want %q", line, got, want)
		}
	}
	if got := len(assignmentsIn(strings.Repeat("A_TOKEN=abcdefgh\n", 1000))); got != maxSecrets {
		t.Errorf("%d diagnostics", got)
	}
}

// Lines without a mark are not searched, so every secret must have one.
func FuzzAssignments_SecretsAreMarked(f *testing.F) {
	for _, name := range []string{
		"A_TOKEN", "SECRETS", "DB_PASSWD", "PASSWORD", "passphrase", "APIKEY", "API_KEY", "ACCESSKEY", "PRIVATE_KEY",
		"SIGNINGKEYS", "Encryption_Key", "CREDENTIALS_X", "GH_PAT",
	} {
		f.Add(name, "abcdefgh")
	}
	long := strings.Repeat("A0", 20)
	for _, value := range []string{
		"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-" + long, "sk_live_", "rk_live_",
		"xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-",
		"AKIA" + long, "AIza" + long, "npm_" + long, "hf_" + long, "dop_v1_", "SG.",
		"'-----BEGIN X'", "eyJa.eyJ", "https://a:b@c", "://:p@",
	} {
		if len(assignmentsOf("A="+value)) != 1 {
			f.Errorf("%s is no secret", value)
		}
		f.Add("A", value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, line := range []string{
			name + "=" + value, "set -x " + name + " " + value, "$env." + name + " = " + value,
		} {
			if len(assignmentsOf(line)) > 0 && !isMarked(line) {
				t.Errorf("%q has no mark", line)
			}
		}
	})
}

// What only may be a secret is one in a file that somebody else sources.
func TestMayHoldSecret(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"export DB_PASS='hunter2hunter'", "export PGPASS=hunter2", "declare -x MYSQL_PWD=hunter2",
		"export API_TOKEN=abcdef", `alias gl='curl -H "PRIVATE-TOKEN: glpat-abcdef"'`,
		"alias db='mysql -phunter2hunter'", "# export OLD_TOKEN=ghp_abcdef",
		": ${GITLAB_TOKEN:=glpat-abcdef}", "GITHUB_TOKEN+=ghp_abcdef", `GPG_PASSPHRASE=$'abc'`,
		`AWS_SECRET_ACCESS_KEY="wJalr$U"`, "curl -u me:hunter2 https://x", "git clone https://u:p@x.example",
		"cat >~/x <<E\nmachine h.example login me password hunter2\nE", "ftp -n <<E\n  password hunter2\nE",
		"machine h.example\nlogin me\npassword hunter2",
	} {
		if !MayHoldSecret("a", "PATH=/bin\n"+secret+"\n") {
			t.Errorf("%q is none", secret)
		}
	}
	for _, plain := range []string{
		"#!/bin/sh\n# rustup shell setup\n" +
			`case ":${PATH}:" in *:"$HOME/.cargo/bin":*) ;; *) export PATH="$HOME/.cargo/bin:$PATH" ;; esac`,
		`export SDKMAN_DIR="$HOME/.sdkman"`, "alias ll='ls -l'; bindkey -e", `TOKEN="$(pass show token)"`,
		"export KEYTIMEOUT=1", "mkdir -p ~/x; chown -R u:g x", `export GPG_TTY=$(tty)`,
		"# asks for no password again", "# per machine local login settings",
		`alias vm="ssh machine one"`, "read -r password", "password \"$1\"",
	} {
		if MayHoldSecret("b", plain) {
			t.Errorf("%q is one", plain)
		}
	}
}
