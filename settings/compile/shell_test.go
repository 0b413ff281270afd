package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
)

func TestShell_IsTheUsersOwnChoice(t *testing.T) {
	t.Parallel()
	f := resolvetest.Tree(t, map[string]string{"/home/u/project/": ""})
	for name, test := range map[string]struct {
		user, project  string
		zed            []string
		terminal, tool string
	}{
		"none":   {user: `{}`},
		"a name": {user: `{"shell": ["zsh"]}`, terminal: "zsh", tool: "zsh"},
		"with home": {
			user: `{"shell": ["~/bin/fish", "-l"]}`, terminal: "/home/u/bin/fish -l",
			tool: "/home/u/bin/fish -l",
		},
		"for one kind":  {user: `{"tool": {"shell": ["/bin/dash"]}}`, tool: "/bin/dash"},
		"relative":      {user: `{"shell": ["bin/x"]}`},
		"empty":         {user: `{"shell": []}`},
		"empty name":    {user: `{"shell": [""]}`},
		"Zed's":         {user: `{}`, zed: []string{"/bin/zsh"}, terminal: "/bin/zsh"},
		"not itself":    {user: `{}`, zed: []string{"/usr/bin/sandbox-sidecar", "exec", "--", "zsh"}},
		"both":          {user: `{"shell": ["bash"]}`, zed: []string{"/bin/zsh"}, terminal: "bash", tool: "bash"},
		"the project's": {user: `{}`, project: `{"shell": ["/home/u/project/evil"]}`},
	} {
		s := snapshotOf(t, f, test.user, test.project)
		s.UserStates[0].Good.EditorShell = test.zed
		for kind, want := range map[document.Kind]string{
			document.KindTerminal: test.terminal, document.KindTool: test.tool,
		} {
			if got := strings.Join(s.Compile(kind).Shell, " "); got != want {
				t.Errorf("%s: %s: %q, want %q", name, kind, got, want)
			}
		}
		said := said(s.Compile(document.KindTool), userFile)
		wrong := slices.Contains([]string{"relative", "empty", "empty name"}, name)
		if wrong != strings.Contains(said, "expected a program with its arguments") {
			t.Errorf("%s: said %q", name, said)
		}
	}
	asking := snapshotOf(t, f, `{}`, `{"shell": ["/home/u/project/evil"]}`)
	if asks := asking.Project().Asks; len(asks) != 1 || !strings.Contains(asks[0].Opens, "not sandboxed") {
		t.Errorf("asks: %+v", asks)
	}
}
