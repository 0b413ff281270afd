package compile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sandbox-sidecar/sandbox-sidecar/platform/policy"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/document"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/resolve/resolvetest"
	"github.com/sandbox-sidecar/sandbox-sidecar/settings/risks"
)

// What settings of programs outside write out, sessions may write, and it is
// reviewed, with the file that names it.
func TestMentioned(t *testing.T) {
	t.Parallel()
	tree := map[string]string{
		"/tmp/": "", "/home/u/p/dir/x": "", "/home/u/p/.git/HEAD": "", "/home/u/p/prompt.go": "", "/home/u/p/free": "",
		"/home/u/.claude/settings.json": `{"hooks": {"Stop": [{"hooks": [{"command": "~/p/hook.sh --x"}]}]}}`,
		"/home/u/.cursor/mcp.json": `{"mcpServers": {"x": {"command": "node", "args": ["/home/u/p/server.js"]}},
			"history": ["look at /home/u/p/prompt.go"], "projects": {"/home/u/p": {}}}`,
		"/home/u/.codex/config.toml":             "notify = [\"python3\", \"/home/u/p/notify.py\"]\n",
		"/home/u/.tmux.conf":                     "# ~/p/free\nbind x run-shell '~/p/tmux.sh'; source-file ~/p/dir ~/p/missing\n",
		"/home/u/.config/systemd/user/x.service": "[Service]\nExecStart=%h/p/daemon\nWorkingDirectory=%h/p\n",
		"/home/u/.config/systemd/user/x.socket":  "ExecStartPre=%h/p/free\n",
		"/home/u/.config/autostart/x.desktop":    "Exec=/home/u/p/start %u\n",
		"/home/u/.config/nvim/init.lua":          "vim.cmd('source $HOME/p/mine.vim')\n",
		"/home/u/.bashrc":                        "alias a=~/p/alias; alias b=~/p/later\n",
		"/home/u/p/.git/config":                  "[core]\n\tfsmonitor = ./watch\n",
		"/home/u/.gitconfig":                     "[core]\n\teditor = ~/p/edit\n",
		"/home/u/.local/bin/tool":                "-> ../../p/tool",
	}
	want := map[string]string{
		"hook.sh": `"/home/u/.claude/settings.json" names it`, "server.js": `"/home/u/.cursor/mcp.json" names it`,
		"notify.py": `"/home/u/.codex/config.toml" names it`, "tmux.sh": `"/home/u/.tmux.conf" names it`,
		"daemon":   `"/home/u/.config/systemd/user/x.service" names it`,
		"start":    `"/home/u/.config/autostart/x.desktop" names it`,
		"mine.vim": `"/home/u/.config/nvim/init.lua" names it`, "alias": `"/home/u/.bashrc" names it`,
		"later": `"/home/u/.bashrc" names it`, "edit": "git runs it: its configuration names it in core.editor",
		"watch": "git runs it: its configuration names it in core.fsmonitor",
		"tool":  `"/home/u/.local/bin/tool" leads there, and your shells find programs there`,
	}
	for name := range want {
		if name != "later" {
			tree["/home/u/p/"+name] = ""
		}
	}
	f := resolvetest.InMemory(tree)
	own := snapshotOf(t, f, `{"enabled": true}`, "")
	own.ProjectDir = "/home/u/p"
	tree["/home/u/project/"] = ""
	granted := snapshotOf(t, f, `{"enabled": true, "additional_read_write_paths": ["~/p"]}`, "")
	for how, s := range map[string]*Snapshot{"the project": own, "a grant": granted} {
		p := s.Compile(document.KindTool).Policy
		got := map[string]string{}
		for path, why := range p.Reviewed {
			if name, is := strings.CutPrefix(path, "/home/u/p/"); is {
				got[name] = why
			}
			if strings.HasPrefix(path, "/home/u/p/") && !p.At(path).Has(policy.Write) {
				t.Errorf("%s: %s cannot be written", how, path)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %q, want %q", how, got, want)
		}
	}
}

// Who exchanges a symlink on the way to such a file has another one run.
func TestMentioned_SymlinksOnTheWayAreReviewed(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/tmp/": "", "/home/u/p/.git/HEAD": "", "/home/u/p/hook": "-> impl/hook", "/home/u/p/impl/hook": "",
		"/home/u/p/now": "-> v1", "/home/u/p/v1/run": "", "/home/u/p/v1/tool": "",
		"/home/u/.bashrc":               "alias r=~/p/now/run\n",
		"/home/u/.claude/settings.json": `{"command": "~/p/hook"}`, "/home/u/.local/bin/tool": "-> ../../p/now/tool",
	})
	s := snapshotOf(t, tree, `{"enabled": true}`, "")
	s.ProjectDir = "/home/u/p"
	p := s.Compile(document.KindTool).Policy
	for _, name := range []string{"hook", "impl/hook", "now", "v1/run", "v1/tool"} {
		if p.Reviewed["/home/u/p/"+name] == "" || !p.At("/home/u/p/"+name).Has(policy.Write) {
			t.Errorf("%s: %q", name, p.Reviewed)
		}
	}
}

// A framework of many files costs no look-up of each path in them.
func TestMentioned_IsBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 4 * maxMentionsOf {
		fmt.Fprintf(&many, "x /usr/bin/%d ~/p/%d ~/p/%d\n", i, i, i)
	}
	tree := map[string]string{
		"/tmp/": "", "/home/u/p/.git/HEAD": "", "/home/u/.zshrc": ". ~/frame/work\n",
		"/home/u/frame/work":            many.String(),
		"/home/u/.claude/settings.json": `{"command": "~/p/hook"}`, "/home/u/p/hook": "",
	}
	s := snapshotOf(t, resolvetest.InMemory(tree), `{"enabled": true}`, "")
	s.ProjectDir = "/home/u/p"
	p := s.Compile(document.KindTool).Policy
	if len(p.Reviewed) != maxMentionsOf+1 || p.Reviewed["/home/u/p/hook"] == "" || p.Reviewed["/home/u/p/0"] == "" {
		t.Errorf("%d are reviewed", len(p.Reviewed))
	}
}

// Who grants such a file for writing is not warned at each start.
func TestMentioned_AGrantIsNoWarning(t *testing.T) {
	t.Parallel()
	tree := resolvetest.InMemory(map[string]string{
		"/tmp/": "", "/home/u/project/": "", "/home/u/notes": "", "/home/u/sourced": "",
		"/home/u/.bashrc": "alias n='vim ~/notes'; . ~/sourced; export LOG=~/log\n",
	})
	for granted, warned := range map[string]bool{"~/notes": false, "~/log": false, "~/sourced": true} {
		s := snapshotOf(t, tree, `{"enabled": true, "additional_read_write_paths": ["`+granted+`"]}`, "")
		compiled := s.Compile(document.KindTool)
		if got := len(compiled.Warnings) > 0; got != warned {
			t.Errorf("%s: %q", granted, compiled.Warnings)
		}
		path := "/home/u/" + strings.TrimPrefix(granted, "~/")
		if !warned && compiled.Policy.Reviewed[path] == "" {
			t.Errorf("%s is not reviewed", granted)
		}
	}
}

// The list names files that programs act on themselves.
func TestMentioned_TheListIsOfActingPlaces(t *testing.T) {
	t.Parallel()
	for _, name := range risks.Naming {
		if !slices.ContainsFunc(risks.All(), func(place risks.Place) bool {
			return place.Acts != "" && policy.Contains(place.Path, name)
		}) {
			t.Errorf("%s is in no place that somebody acts on", name)
		}
	}
}
