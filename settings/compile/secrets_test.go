package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestSecrets_AreToldByNameAndNeverByValue(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{
		"/home/u/.bashrc":                  "alias ll='ls -l'\n\nexport GITHUB_TOKEN=verysecretvalue\n",
		"/home/u/.zshrc":                   "-> dotfiles/zshrc",
		"/home/u/dotfiles/zshrc":           "export API_KEY=verysecretvalue\n",
		"/home/u/.config/fish/config.fish": "set -x NPM_TOKEN verysecretvalue\n",
		"/home/u/.kshrc":                   "export NOT_GRANTED_TOKEN=verysecretvalue\n",
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
	if got := said(c, "/home/u/.kshrc"); got != "" {
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
	// Without a sandbox there is no warning.
	if c := snapshotOf(t, f, `{"enabled": false}`, "").Compile(document.KindTool); said(c, "/home/u/.bashrc") != "" {
		t.Error("told although nothing is restricted")
	}
	granted := snapshotOf(t, f, `{"enabled": true, "additional_read_only_paths": ["~/.kshrc"]}`,
		"").Compile(document.KindTool)
	if got := said(granted, "/home/u/.kshrc"); !strings.Contains(got,
		"additional_read_only_paths ("+userFile+":1)") {
		t.Errorf("a file that the user grants: %q", got)
	}
}
