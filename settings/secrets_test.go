package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
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
		for _, s := range secretsIn(line + "\n") {
			got = append(got, fmt.Sprintf("%s %d", s.name, s.at.Column))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: found %q, want %q", line, got, want)
		}
	}
	if got := len(secretsIn(strings.Repeat("A_TOKEN=abcdefgh\n", 1000))); got != maxSecrets {
		t.Errorf("%d remarks", got)
	}
}

func TestSecrets_AreToldByNameAndNeverByValue(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/.bashrc":                  "alias ll='ls -l'\n\nexport GITHUB_TOKEN=verysecretvalue\n",
		"/home/u/.zshrc":                   "-> dotfiles/zshrc",
		"/home/u/dotfiles/zshrc":           "export API_KEY=verysecretvalue\n",
		"/home/u/.config/fish/config.fish": "set -x NPM_TOKEN verysecretvalue\n",
		"/home/u/.bash_aliases":            "export NOT_GRANTED_TOKEN=verysecretvalue\n",
		"/home/u/project/":                 "",
	})
	const on = `{"enabled": true}`
	s := snapshotOf(t, f, on, "")
	c := s.Compile(document.KindTool)
	for file, want := range map[string]string{
		"/home/u/.bashrc": "3:8: warning: GITHUB_TOKEN looks like a secret, and sessions may read this " +
			"file (home dotfiles (built-in defaults))",
		"/home/u/.zshrc":                   "1:8: warning: API_KEY looks like a secret",
		"/home/u/.config/fish/config.fish": "1:8: warning: NPM_TOKEN looks like a secret",
	} {
		if got := said(c, file); !strings.HasPrefix(got, want) {
			t.Errorf("%s: said %q, want %q", file, got, want)
		}
	}
	if got := said(c, "/home/u/.bash_aliases"); got != "" {
		t.Errorf("a file that is not granted: %s", got)
	}
	everything := fmt.Sprintf("%+v %+v %q", c, s.Diagnostics(), c.Warnings)
	if strings.Contains(everything, "verysecret") {
		t.Errorf("the value is told: %s", everything)
	}
	for _, d := range c.Diagnostics {
		if d.Project != "" {
			t.Errorf("holds for one project: %v", d)
		}
	}
	// It is the sandbox that the hint is about.
	if c := snapshotOf(t, f, `{"enabled": false}`, "").Compile(document.KindTool); said(c, "/home/u/.bashrc") != "" {
		t.Error("told although nothing is restricted")
	}
	granted := snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["~/.bash_aliases"]}`,
		"").Compile(document.KindTool)
	if got := said(granted, "/home/u/.bash_aliases"); !strings.Contains(got,
		"additional_read_only_paths ("+userFile+":1)") {
		t.Errorf("a file that the user grants: %q", got)
	}
}
