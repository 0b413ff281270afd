package startup

import (
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, text, want string }{
		{"tmux.conf", "run-shell ~/a", "run-shell ~/a"},
		{"settings.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "~/a b"}]}]}}`, "~/a b"},
		{
			".claude.json", `{"mcpServers": {"x": {"command": "node", "args": ["/h/a.js",
				"--x"]}}, "history": [{"display": "fix /h/b.go"}], "projects": {"/h/p": {}}}`,
			"node /h/a.js --x",
		},
		{"mcp.json", `{"servers":{"x":{"COMMAND":"\/h\/a"}},"statusLine":{"command":"$HOME/c"}}`, "/h/a $HOME/c"},
		{"a.jsonc", `{"terminal.integrated.shell": "/h/sh", "python.interpreterPath": "~/py", "theme": "/h/t"}`, "/h/sh ~/py"},
		{
			"x.json", `{"command": "\"$HOME\"/p/hook.sh", "rust-analyzer.server.path": "/h/ra",
				"shellArgs.linux": ["-c", "[[ a ]] && ~/b"]}`,
			`"$HOME"/p/hook.sh /h/ra -c [[ a ]] && ~/b`,
		},
		{"x.desktop", "[Desktop Entry]\nName=/h/n\nIcon=/h/i\nExec=/h/e %u\nTryExec=/h/t\n", "Exec=/h/e %u TryExec=/h/t"},
		{
			"x.service", "[Service]\nExecStart=!%h/e\nStandardOutput=append:%h/o\nEnvironmentFile=%h/v\n",
			"ExecStart=!%h/e EnvironmentFile=%h/v",
		},
		{"b.json", `{"command": {"a": 1}, "args": 3, "note": "command: /h/x"}`, ""},
		{"c.json", `{"command": "unended`, ""},
	} {
		if got := strings.Join(strings.Fields(Commands(test.name, test.text)), " "); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.name, test.text, got, test.want)
		}
	}
}

func TestLoads(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, text, want string }{
		{".zshrc", "fpath=(~/a $fpath)\necho ~/b", "/h/a"},
		{".zshrc", "fpath=(\n  ~/a $(x ~/b)\n  ~/c\n)\ncd ~/d", "/h/a /h/b /h/c"},
		{".zshrc", "fpath=(~/a # not (x\n)\ncd ~/b", "/h/a"},
		{".zshrc", "fpath=(~/a '('\n" + strings.Repeat("x\n", 100) + "cd ~/b", "/h/a"},
		{"config.fish", "set -gx fish_function_path ~/a $fish_function_path\ncd ~/b", "/h/a"},
		{".vimrc", "set rtp+=~/a\nset runtimepath^=~/b\nlet x = '~/c'", "/h/a /h/b"},
		{".vimrc", "call plug#begin()\nPlug '~/a'\nPlug 'x/y'", "/h/a"},
		{"init.lua", `vim.opt.rtp:append("~/a")`, "/h/a"},
		{"plugins.lua", "{ \"x/y\" },\n{ dir = \"~/a\", lazy = true },\nlocal b = \"~/b\"", "/h/a"},
		{"init.el", "(add-to-list 'load-path \"~/a\")\n(cd \"~/b\")", "/h/a"},
		{".bashrc", "dir=~/a\nlocal dir = \"$HOME/b\"\nzinitialize ~/c", ""},
		{".bashrc", "alias p='cd ~/a'; export GOPATH=~/b; plugins=(git)", ""},
		{".bashrc", "", ""},
	} {
		if got := strings.Join(Mentioned(Loads(row.name, row.text), "/h"), " "); got != row.want {
			t.Errorf("%s: %q: %q, want %q", row.name, row.text, got, row.want)
		}
	}
}
