// Package protected is the table of names in a project that programs outside
// the sandbox act upon. The policy, the review and the documentation read it.
//
// See docs/design/protected-names.md.
package protected

import (
	"slices"
	"strings"
)

// Name is a file or directory that a program outside acts upon.
type Name struct {
	// Path is relative to the project. Its last name may contain *, which stands
	// for any characters. In the group Installed, which is only searched for, a
	// name in the middle may be *.
	Path string
	// Who acts upon it, and Why that matters.
	Who, Why string
	// Group is set for a name that is not protected, because sessions change it
	// for good reasons. The review lists the changes of a group together.
	Group Group
	// Scripts limits the review to the commands of a package.json, as far as it
	// is known what the file was before.
	Scripts bool
}

// Group is what several names have in common.
type Group string

// The groups, in the order of the documentation.
const (
	Instructions Group = "agents' instructions"
	Hooks        Group = "git hooks"
	Unfinished   Group = "unfinished operations of git"
	BuildFiles   Group = "build files"
	Installed    Group = "installed programs"
	CI           Group = "CI files"
)

// Groups are all groups.
var Groups = []Group{Instructions, Hooks, Unfinished, BuildFiles, Installed, CI}

// Why says who acts upon the names of a group.
func (g Group) Why() string {
	switch g {
	case Instructions:
		return "agents follow them"
	case Hooks:
		return "git runs them if it is set up to"
	case Unfinished:
		return "git runs their commands when the operation continues"
	case BuildFiles:
		return "build tools and editors run what they name"
	case Installed:
		return "programs outside the sandbox start them"
	case CI:
		return "they run on the machines of the CI service"
	}
	return ""
}

// Repository is the directory of a version control system that a path lies in,
// relative to the project; "" if it lies in none. The system creates the names of
// the table there, with the repository.
func Repository(path string) string {
	first, _, below := strings.Cut(path, "/")
	if below && slices.Contains([]string{".git", ".hg", ".sl", ".jj", "_darcs", ".pijul"}, first) {
		return first
	}
	return ""
}

// Names is the table. The paths of git that depend on the repository are found
// by settings/git.
var Names = slices.Concat([]Name{
	{Path: ".git/hooks", Who: "git", Why: "git runs these hooks"},
	{Path: ".git/config", Who: "git", Why: "git runs the programs it names"},
	{Path: ".gitmodules", Who: "git", Why: "git clones from the addresses it names"},
	{Path: ".zed", Who: "Zed, sandbox-sidecar", Why: "they hold the settings and tasks of the project"},
	{Path: ".vscode", Who: "VS Code and its forks", Why: "they run the tasks and programs it names"},
	{Path: "*.code-workspace", Who: "VS Code and its forks", Why: "they run the tasks and programs it names"},
	{Path: ".idea", Who: "JetBrains IDEs", Why: "they run the configurations it names"},
	{Path: ".run", Who: "JetBrains IDEs", Why: "they run the configurations it names"},
	{Path: ".nvim.lua", Who: "Neovim", Why: "Neovim runs it if exrc is set"},
	{Path: ".nvimrc", Who: "Neovim", Why: "Neovim runs it if exrc is set"},
	{Path: ".exrc", Who: "Vim, Neovim", Why: "Vim runs it if exrc is set"},
	{Path: ".vimrc", Who: "Vim", Why: "Vim runs it if exrc is set"},
	{Path: ".dir-locals.el", Who: "Emacs", Why: "Emacs sets the variables it names, some of which run code"},
	{Path: ".dir-locals-2.el", Who: "Emacs", Why: "Emacs reads it beside .dir-locals.el"},
	{Path: ".envrc", Who: "direnv", Why: "direnv runs it when you enter the directory"},
	{Path: "mise.toml", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".mise.toml", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: "mise.*.toml", Who: "mise", Why: "mise reads it beside mise.toml, such as mise.local.toml"},
	{Path: ".mise.*.toml", Who: "mise", Why: "mise reads it beside .mise.toml"},
	{Path: ".config/mise*", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".mise", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".devcontainer", Who: "editors", Why: "editors build and start containers from it"},
	{Path: ".cargo/config*", Who: "cargo", Why: "cargo runs the programs it names"},
	{Path: "rust-analyzer.toml", Who: "rust-analyzer", Why: "rust-analyzer in the editor runs the commands it names"},
	{Path: "lefthook.*", Who: "lefthook", Why: "lefthook runs these commands as git hooks"},
	{Path: ".lefthook.*", Who: "lefthook", Why: "lefthook runs these commands as git hooks"},
	{Path: ".mcp.json", Who: "agents", Why: "agents start the servers it names"},
	{Path: ".claude", Who: "Claude Code", Why: "it runs the hooks and commands in it"},
	{Path: ".codex", Who: "Codex", Why: "it starts the servers that its configuration names"},
	{Path: ".cursor", Who: "Cursor", Why: "it starts the servers and follows the rules in it"},
	{Path: ".gemini", Who: "Gemini CLI", Why: "it starts the servers that its settings name"},
	{Path: ".opencode", Who: "opencode", Why: "it runs the plugins and commands in it"},
	{Path: "opencode.json", Who: "opencode", Why: "it starts the servers it names"},
	{Path: "opencode.jsonc", Who: "opencode", Why: "it starts the servers it names"},
	{Path: ".crush.json", Who: "Crush", Why: "it starts the servers it names"},
	{Path: "crush.json", Who: "Crush", Why: "it starts the servers it names"},
	{Path: ".qwen", Who: "Qwen Code", Why: "it starts the servers that its settings name"},
	{Path: ".kiro", Who: "Kiro", Why: "it runs the hooks and starts the servers in it"},
	{Path: ".factory", Who: "Factory Droid", Why: "it runs the hooks and starts the servers in it"},
	{Path: ".junie", Who: "Junie", Why: "it starts the servers and follows the rules in it"},
	{Path: ".kilocode", Who: "Kilo Code", Why: "it starts the servers and follows the rules in it"},
	{Path: ".roo", Who: "Roo Code", Why: "it starts the servers and follows the rules in it"},
	{Path: ".amazonq", Who: "Amazon Q", Why: "it starts the servers and follows the rules in it"},
	{Path: ".continue", Who: "Continue", Why: "it starts the servers and follows the rules in it"},
	// Not its history and caches, which it writes while it works.
	{Path: ".aider.conf*", Who: "aider", Why: "it runs the commands that its configuration names"},
	{Path: ".aider.model*", Who: "aider", Why: "it sends your code where its configuration says"},
	{Path: ".openoxide", Who: "OpenOxide", Why: "it runs what its configuration names"},
}, repositories, editors, shellHelpers, agents,
	instructions, hooks, unfinished, buildFiles, moreBuildFiles, installed, ci)
