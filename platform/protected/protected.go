// Package protected is the table of names in a project that programs outside
// the sandbox act upon. The policy, the review and the documentation read it.
//
// See docs/design/protected-names.md.
package protected

// Name is a file or directory that a program outside acts upon.
type Name struct {
	// Path is relative to the project. Its last
	// name may contain *, which stands for any characters.
	Path string
	// Who acts upon it, and Why that matters.
	Who, Why string
	// ReviewOnly names are not protected, because sessions change them for good
	// reasons. The review lists their changes.
	ReviewOnly bool
	// Scripts limits the review to the commands of a package.json.
	Scripts bool
}

// Names is the table. The paths of git that depend on the repository are found
// by settings/git.
var Names = []Name{
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
	{Path: ".envrc", Who: "direnv", Why: "direnv runs it when you enter the directory"},
	{Path: "mise.toml", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".mise.toml", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".mise", Who: "mise", Why: "mise runs its commands when you enter the directory"},
	{Path: ".devcontainer", Who: "editors", Why: "editors build and start containers from it"},
	{Path: ".cargo/config*", Who: "cargo", Why: "cargo runs the programs it names"},
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
	{Path: ".roo", Who: "Roo Code", Why: "it starts the servers and follows the rules in it"},
	{Path: ".amazonq", Who: "Amazon Q", Why: "it starts the servers and follows the rules in it"},
	{Path: ".continue", Who: "Continue", Why: "it starts the servers and follows the rules in it"},
	// Not its history and caches, which it writes while it works.
	{Path: ".aider.conf*", Who: "aider", Why: "it runs the commands that its configuration names"},
	{Path: ".aider.model*", Who: "aider", Why: "it sends your code where its configuration says"},
	{Path: ".openoxide", Who: "OpenOxide", Why: "it runs what its configuration names"},

	{Path: "AGENTS.md", Who: "agents", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: "CLAUDE.md", Who: "Claude Code", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: "CLAUDE.local.md", Who: "Claude Code", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: "GEMINI.md", Who: "Gemini CLI", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: ".cursorrules", Who: "Cursor", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: ".windsurfrules", Who: "Windsurf", Why: "agents follow its instructions", ReviewOnly: true},
	{Path: ".clinerules", Who: "Cline", Why: "agents follow its instructions", ReviewOnly: true},
	{
		Path: ".github/copilot-instructions.md", Who: "Copilot", Why: "agents follow its instructions",
		ReviewOnly: true,
	},
	{Path: ".husky", Who: "git", Why: "git runs these hooks, if husky is installed", ReviewOnly: true},
	{Path: ".githooks", Who: "git", Why: "git runs these hooks, if core.hooksPath names them", ReviewOnly: true},
	{
		Path: ".pre-commit-config.yaml", Who: "pre-commit", Why: "pre-commit runs these commands before each commit",
		ReviewOnly: true,
	},
	{
		Path: "package.json", Who: "npm and others", Why: "npm and others run these scripts, some during an install",
		ReviewOnly: true, Scripts: true,
	},
	{Path: ".npmrc", Who: "npm", Why: "npm runs the programs it names", ReviewOnly: true},
	{Path: ".yarnrc.yml", Who: "yarn", Why: "yarn runs the programs it names", ReviewOnly: true},
	{Path: ".pnpmfile.cjs", Who: "pnpm", Why: "pnpm runs it during an install", ReviewOnly: true},
	{Path: "setup.py", Who: "pip", Why: "pip runs it during an install", ReviewOnly: true},
	{Path: "conftest.py", Who: "pytest", Why: "pytest runs it", ReviewOnly: true},
	{Path: "noxfile.py", Who: "nox", Why: "nox runs it", ReviewOnly: true},
	{Path: "build.rs", Who: "cargo", Why: "cargo runs it during a build", ReviewOnly: true},
	{Path: "Makefile", Who: "make", Why: "make runs its commands", ReviewOnly: true},
	{Path: "GNUmakefile", Who: "make", Why: "make runs its commands", ReviewOnly: true},
	{Path: "CMakeLists.txt", Who: "CMake", Why: "CMake and editors run its commands", ReviewOnly: true},
	{Path: "meson.build", Who: "Meson", Why: "Meson and editors run its commands", ReviewOnly: true},
	{Path: "justfile", Who: "just", Why: "just runs its commands", ReviewOnly: true},
	{Path: "Taskfile.yml", Who: "task", Why: "task runs its commands", ReviewOnly: true},
	{Path: "build.gradle", Who: "Gradle", Why: "Gradle and editors run it", ReviewOnly: true},
	{Path: "build.gradle.kts", Who: "Gradle", Why: "Gradle and editors run it", ReviewOnly: true},
	{Path: "eslint.config.js", Who: "editors", Why: "ESLint runs it in the editor", ReviewOnly: true},
	{Path: "gradlew", Who: "Gradle", Why: "builds are started with this program", ReviewOnly: true},
	{Path: "pom.xml", Who: "Maven", Why: "Maven and editors run the plugins it names", ReviewOnly: true},
	{Path: "mvnw", Who: "Maven", Why: "builds are started with this program", ReviewOnly: true},
	{Path: "Rakefile", Who: "rake", Why: "rake runs it", ReviewOnly: true},
	{Path: "Gemfile", Who: "Bundler", Why: "Bundler runs it", ReviewOnly: true},
	{
		Path: ".bazelrc", Who: "bazel", Why: "bazel reads options from it, some of which name programs",
		ReviewOnly: true,
	},
	{Path: ".tool-versions", Who: "asdf, mise", Why: "asdf and mise choose programs from it", ReviewOnly: true},
	{Path: ".github/workflows", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: ".github/actions", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: ".gitlab-ci.yml", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: ".circleci", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: "azure-pipelines.yml", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: "Jenkinsfile", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{Path: ".travis.yml", Who: "CI", Why: "it runs on the machines of the CI service", ReviewOnly: true},
	{
		Path: ".git/rebase-merge/git-rebase-todo", Who: "git", Why: "git runs its commands when the rebase continues",
		ReviewOnly: true,
	},
	{Path: ".git/sequencer/todo", Who: "git", Why: "git acts upon it when the cherry-pick continues", ReviewOnly: true},
}
