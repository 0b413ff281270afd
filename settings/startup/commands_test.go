package startup

import (
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"tmux.conf", "run-shell ~/a", "run-shell ~/a"},
		{"settings.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "~/a b"}]}]}}`, `"~/a b"`},
		{
			".claude.json", `{"mcpServers": {"x": {"command": "node", "args": ["/h/a.js",
				"--x"]}}, "history": [{"display": "fix /h/b.go"}], "projects": {"/h/p": {}}}`,
			`"node" ["/h/a.js", "--x"]`,
		},
		{"mcp.json", `{"servers":{"x":{"COMMAND":"\/h\/a"}},"statusLine":{"command":"$HOME/c"}}`, `"/h/a" "$HOME/c"`},
		{"a.jsonc", `{"terminal.integrated.shell": "/h/sh", "python.interpreterPath": "~/py", "theme": "/h/t"}`, `"/h/sh" "~/py"`},
		{"b.json", `{"command": {"a": 1}, "args": 3, "note": "command: /h/x"}`, ""},
		{"c.json", `{"command": "unended`, ""},
	} {
		if got := strings.Join(strings.Fields(Commands(test.name, test.text)), " "); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.name, test.text, got, test.want)
		}
	}
}
