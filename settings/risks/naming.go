package risks

import (
	"path/filepath"
	"slices"
	"strings"
)

// Naming are settings of programs outside that write out which programs, scripts
// and servers they run, often as whole paths. In the last name * stands for any
// characters. Files that source others, or include them, are read only
// themselves. ~/.claude.json is not among them: its program writes it all the time,
// and each start of a session would evaluate the settings anew.
var Naming = []string{
	// Agents: hooks, servers and status lines.
	"~/.claude/settings.json", "~/.claude/settings.local.json", "~/.codex/config.toml",
	"~/.codex/hooks.json", "~/.gemini/settings.json", "~/.config/opencode/opencode.json",
	"~/.config/opencode/opencode.jsonc", "~/.copilot/mcp-config.json", "~/.copilot/config.json",
	"~/.aider.conf.yml", "~/.cursor/mcp.json", "~/.cursor/hooks.json", "~/.qwen/settings.json",
	"~/.kiro/settings/mcp.json",
	"~/.factory/mcp.json", "~/.config/goose/config.yaml", "~/.config/crush/crush.json", "~/.config/amp/settings.json",
	"~/.mcp.json", "~/.config/mcp/mcp.json", "~/.config/Claude/claude_desktop_config.json",
	"~/.codeium/windsurf/mcp_config.json",
	// Editors.
	"~/.vimrc", "~/.config/nvim/init.vim", "~/.config/nvim/init.lua", "~/.emacs", "~/.emacs.d/init.el",
	"~/.config/emacs/init.el", "~/.config/zed/settings.json", "~/.config/zed/tasks.json",
	"~/.config/Code/User/settings.json", "~/.config/Code/User/tasks.json", "~/.config/Code/User/mcp.json",
	"~/.config/Cursor/User/settings.json", "~/.config/VSCodium/User/settings.json", "~/.config/helix/languages.toml",
	"~/.config/sublime-text/Packages/User/Preferences.sublime-settings",
	// Terminals and shells.
	"~/.tmux.conf", "~/.config/tmux/tmux.conf", "~/.screenrc", "~/.config/kitty/kitty.conf", "~/.wezterm.lua",
	"~/.config/alacritty/alacritty.toml", "~/.config/ghostty/config", "~/.config/zellij/config.kdl", "~/.inputrc",
	"~/.config/direnv/direnvrc", "~/.direnvrc", "~/.config/starship.toml", "~/.config/mise/config.toml",
	// The desktop and logins.
	"~/.xinitrc", "~/.xprofile", "~/.xsession", "~/.xsessionrc", "~/.config/i3/config", "~/.config/sway/config",
	"~/.config/hypr/hyprland.conf", "~/.config/sxhkd/sxhkdrc", "~/.config/autostart/*.desktop",
	"~/.local/share/applications/*.desktop", "~/.config/systemd/user/*.service", "~/.config/systemd/user/*.path",
	// Tools.
	"~/.gdbinit", "~/.ssh/config", "~/.npmrc", "~/.cargo/config.toml", "~/.hgrc", "~/.config/jj/config.toml",
	"~/.pythonrc", "~/.muttrc", "~/.mailcap", "~/.forward", "~/.procmailrc", "~/.config/mpv/mpv.conf",
	"~/.config/lazygit/config.yml", "~/.gnupg/gpg-agent.conf", "~/.docker/config.json", "~/.kube/config",
	"~/.aws/config",
}

// NamingIn is the list in home directories, by absolute paths, and where variables
// say that such a file is. getenv reads the environment of programs outside.
func NamingIn(homes []string, getenv func(name string) string) (list []string) {
	add := func(path string) {
		if !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	for _, name := range Naming {
		for _, home := range homes {
			add(filepath.Join(home, strings.TrimPrefix(name, "~/")))
		}
	}
	for _, m := range variables {
		if Searches(m.variable) || m.name != "" {
			continue
		}
		for _, path := range pathsIn(m.words(getenv(m.variable)), homes) {
			for _, name := range Naming {
				if below, is := strings.CutPrefix(name, m.usual); is && (below == "" || below[0] == '/') {
					add(path + below)
				}
			}
		}
	}
	return list
}
