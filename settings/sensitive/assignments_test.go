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
